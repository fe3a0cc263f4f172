"""Reference programs for ``photo-patches``."""

from mle_rl.tasks.references.reference import Reference, joined, reference

_LOAD = """\
train = pd.read_csv("input/train.csv")
test = pd.read_csv("input/test.csv")
train_images = np.load("input/train_images.npy")
test_images = np.load("input/test_images.npy")
y = train["label"]
"""

_PIXELS = """\
X = train_images.reshape(len(train_images), -1) / 255.0
X_test = test_images.reshape(len(test_images), -1) / 255.0
"""

_COLOURS = """\
def describe(images):
    pixels = images.reshape(len(images), -1, 3) / 255.0
    return np.hstack([pixels.mean(axis=1), pixels.std(axis=1)])


X = describe(train_images)
X_test = describe(test_images)
"""

_TEXTURE = """\
def describe(images):
    pixels = images.astype(float) / 255.0
    flat = pixels.reshape(len(pixels), -1, 3)
    across = np.diff(pixels, axis=2)
    down = np.diff(pixels, axis=1)
    return np.hstack(
        [
            flat.mean(axis=1),
            flat.std(axis=1),
            np.median(flat, axis=1),
            flat.min(axis=1),
            flat.max(axis=1),
            np.abs(across).mean(axis=(1, 2)),
            np.abs(down).mean(axis=(1, 2)),
            across.mean(axis=(1, 2)),
            down.mean(axis=(1, 2)),
        ]
    )


X = describe(train_images)
X_test = describe(test_images)
"""

_DETAIL_FUNCTION = """\
def describe(images):
    pixels = images.astype(float) / 255.0
    flat = pixels.reshape(len(pixels), -1, 3)
    across = np.abs(np.diff(pixels, axis=2))
    down = np.abs(np.diff(pixels, axis=1))
    total = flat.sum(axis=2, keepdims=True) + 1e-3
    chroma = flat / total
    quantiles = np.quantile(flat, [0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0], axis=1)
    return np.hstack(
        [
            flat.mean(axis=1),
            flat.std(axis=1),
            chroma.mean(axis=1),
            chroma.std(axis=1),
            quantiles.transpose(1, 0, 2).reshape(len(flat), -1),
            across.mean(axis=(1, 2)),
            down.mean(axis=(1, 2)),
            across.max(axis=(1, 2)),
            down.max(axis=(1, 2)),
            pixels.reshape(len(pixels), 2, 6, 2, 6, 3).mean(axis=(2, 4)).reshape(len(pixels), -1),
            pixels.mean(axis=2).reshape(len(pixels), -1)[:, ::6],
        ]
    )
"""

_DETAIL = f"""\
{_DETAIL_FUNCTION}

X = describe(train_images)
X_test = describe(test_images)
"""

_FIT = """\
model.fit(X, y)
labels = model.predict(X_test)
"""

_WRITE = """\
pd.DataFrame({"id": test["id"], "label": labels}).to_csv("submission.csv", index=False)
"""

_BASICS = """\
import numpy as np
import pandas as pd
"""


def _model(name: str, plan: str, imports: str, features: str, model: str) -> Reference:
    return reference(name, plan, joined(_BASICS, imports), _LOAD, features, model, _FIT, _WRITE)


def _program(name: str, plan: str, imports: str, *body: str) -> Reference:
    return reference(name, plan, joined(_BASICS, imports), _LOAD, *body, _WRITE)


REFERENCES = (
    _model(
        "most-frequent",
        "Predict the most frequent label.",
        "from sklearn.dummy import DummyClassifier",
        _PIXELS,
        'model = DummyClassifier(strategy="most_frequent")',
    ),
    _model(
        "colour-naive-bayes",
        "Mean and spread of each colour, Gaussian naive Bayes.",
        "from sklearn.naive_bayes import GaussianNB",
        _COLOURS,
        "model = GaussianNB()",
    ),
    _model(
        "colour-nearest-neighbours",
        "Mean and spread of each colour, nearest neighbours.",
        "from sklearn.neighbors import KNeighborsClassifier",
        _COLOURS,
        "model = KNeighborsClassifier(15)",
    ),
    _model(
        "colour-logistic",
        "Mean and spread of each colour, logistic regression.",
        """
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        """,
        _COLOURS,
        "model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))",
    ),
    _model(
        "colour-random-forest",
        "Mean and spread of each colour, random forest.",
        "from sklearn.ensemble import RandomForestClassifier",
        _COLOURS,
        "model = RandomForestClassifier(200, random_state=0)",
    ),
    _model(
        "pixels-naive-bayes",
        "Raw pixels, Gaussian naive Bayes.",
        "from sklearn.naive_bayes import GaussianNB",
        _PIXELS,
        "model = GaussianNB()",
    ),
    _model(
        "pixels-nearest-centroid",
        "Raw pixels, the nearest mean picture.",
        "from sklearn.neighbors import NearestCentroid",
        _PIXELS,
        "model = NearestCentroid()",
    ),
    _model(
        "pixels-nearest-neighbours",
        "Raw pixels, five nearest neighbours.",
        "from sklearn.neighbors import KNeighborsClassifier",
        _PIXELS,
        "model = KNeighborsClassifier()",
    ),
    _model(
        "pixels-decision-tree",
        "Raw pixels, a decision tree.",
        "from sklearn.tree import DecisionTreeClassifier",
        _PIXELS,
        "model = DecisionTreeClassifier(random_state=0)",
    ),
    _model(
        "pixels-logistic",
        "Raw pixels, logistic regression.",
        """
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        """,
        _PIXELS,
        "model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=200))",
    ),
    _model(
        "pixels-linear-discriminant",
        "Raw pixels, linear discriminant with shrinkage.",
        "from sklearn.discriminant_analysis import LinearDiscriminantAnalysis",
        _PIXELS,
        'model = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")',
    ),
    _model(
        "pixels-svm",
        "Raw pixels, support vector machine with default settings.",
        """
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        from sklearn.svm import SVC
        """,
        _PIXELS,
        "model = make_pipeline(StandardScaler(), SVC())",
    ),
    _model(
        "pixels-random-forest",
        "Raw pixels, random forest with default settings.",
        "from sklearn.ensemble import RandomForestClassifier",
        _PIXELS,
        "model = RandomForestClassifier(random_state=0)",
    ),
    _model(
        "pixels-extra-trees",
        "Raw pixels, three hundred extremely randomised trees.",
        "from sklearn.ensemble import ExtraTreesClassifier",
        _PIXELS,
        "model = ExtraTreesClassifier(300, random_state=0)",
    ),
    _model(
        "components-svm",
        "Forty principal components, support vector machine.",
        """
        from sklearn.decomposition import PCA
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        from sklearn.svm import SVC
        """,
        _PIXELS,
        "model = make_pipeline(PCA(40, random_state=0), StandardScaler(), SVC(C=10))",
    ),
    _model(
        "components-mlp",
        "Sixty principal components, a small neural network.",
        """
        from sklearn.decomposition import PCA
        from sklearn.neural_network import MLPClassifier
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        """,
        _PIXELS,
        """
        model = make_pipeline(
            PCA(60, random_state=0),
            StandardScaler(),
            MLPClassifier((100,), alpha=1.0, early_stopping=True, max_iter=100, random_state=0),
        )
        """,
    ),
    _model(
        "components-boosting",
        "Thirty principal components, histogram gradient boosting.",
        """
        from sklearn.decomposition import PCA
        from sklearn.ensemble import HistGradientBoostingClassifier
        from sklearn.pipeline import make_pipeline
        """,
        _PIXELS,
        """
        model = make_pipeline(
            PCA(30, random_state=0), HistGradientBoostingClassifier(max_iter=50, random_state=0)
        )
        """,
    ),
    _model(
        "texture-naive-bayes",
        "Statistics of colours and of their gradients, Gaussian naive Bayes.",
        "from sklearn.naive_bayes import GaussianNB",
        _TEXTURE,
        "model = GaussianNB()",
    ),
    _model(
        "texture-quadratic-discriminant",
        "Statistics of colours and gradients, regularised quadratic discriminant.",
        """
        from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        """,
        _TEXTURE,
        """
        model = make_pipeline(StandardScaler(), QuadraticDiscriminantAnalysis(reg_param=0.1))
        """,
    ),
    _model(
        "texture-logistic",
        "Statistics of colours and gradients, logistic regression.",
        """
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        """,
        _TEXTURE,
        "model = make_pipeline(StandardScaler(), LogisticRegression(C=10, max_iter=1000))",
    ),
    _model(
        "texture-nearest-neighbours",
        "Statistics of colours and gradients, nearest neighbours weighted by distance.",
        """
        from sklearn.neighbors import KNeighborsClassifier
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import QuantileTransformer
        """,
        _TEXTURE,
        """
        model = make_pipeline(
            QuantileTransformer(n_quantiles=200, random_state=0),
            KNeighborsClassifier(7, weights="distance"),
        )
        """,
    ),
    _model(
        "texture-svm",
        "Statistics of colours and gradients, support vector machine.",
        """
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        from sklearn.svm import SVC
        """,
        _TEXTURE,
        "model = make_pipeline(StandardScaler(), SVC(C=10))",
    ),
    _model(
        "texture-random-forest",
        "Statistics of colours and gradients, random forest.",
        "from sklearn.ensemble import RandomForestClassifier",
        _TEXTURE,
        "model = RandomForestClassifier(300, random_state=0)",
    ),
    _model(
        "texture-boosting",
        "Statistics of colours and gradients, histogram gradient boosting.",
        "from sklearn.ensemble import HistGradientBoostingClassifier",
        _TEXTURE,
        """
        model = HistGradientBoostingClassifier(max_iter=60, learning_rate=0.08, random_state=0)
        """,
    ),
    _model(
        "texture-extra-trees",
        "Statistics of colours and gradients, extremely randomised trees.",
        "from sklearn.ensemble import ExtraTreesClassifier",
        _TEXTURE,
        "model = ExtraTreesClassifier(500, random_state=0)",
    ),
    _model(
        "detail-extra-trees",
        "Quantiles, chroma, gradients and quarters of the patch; extremely randomised trees.",
        "from sklearn.ensemble import ExtraTreesClassifier",
        _DETAIL,
        "model = ExtraTreesClassifier(500, random_state=0)",
    ),
    _model(
        "detail-searched-svm",
        "Quantiles, chroma, gradients and quarters; penalty and width of an SVM searched.",
        """
        from sklearn.model_selection import GridSearchCV
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        from sklearn.svm import SVC
        """,
        _DETAIL,
        """
        model = GridSearchCV(
            make_pipeline(StandardScaler(), SVC()),
            {"svc__C": [3, 10, 30], "svc__gamma": [0.003, 0.01, 0.03]},
            cv=3,
        )
        """,
    ),
    _model(
        "detail-voting",
        "Quantiles, chroma, gradients and quarters; trees, boosting and an SVM vote.",
        """
        from sklearn.ensemble import (
            ExtraTreesClassifier,
            HistGradientBoostingClassifier,
            VotingClassifier,
        )
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        """,
        _DETAIL,
        """
        model = VotingClassifier(
            [
                ("trees", ExtraTreesClassifier(500, random_state=0)),
                ("boosting", HistGradientBoostingClassifier(max_iter=60, random_state=0)),
                ("linear", make_pipeline(StandardScaler(), LogisticRegression(C=1, max_iter=300))),
            ],
            voting="soft",
            weights=[2, 1, 1],
        )
        """,
    ),
    _model(
        "detail-stacking",
        "Quantiles, chroma, gradients and quarters; two forests and an SVM stacked.",
        """
        from sklearn.ensemble import (
            ExtraTreesClassifier,
            RandomForestClassifier,
            StackingClassifier,
        )
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        from sklearn.svm import SVC
        """,
        _DETAIL,
        """
        model = StackingClassifier(
            [
                ("trees", ExtraTreesClassifier(200, random_state=0)),
                ("forest", RandomForestClassifier(100, random_state=0)),
                ("svm", make_pipeline(StandardScaler(), SVC(C=10))),
            ],
            LogisticRegression(C=0.1, max_iter=500),
            cv=3,
        )
        """,
    ),
    _program(
        "mirrored-extra-trees",
        "Add the mirror image of each training patch; average over both views of a test patch.",
        "from sklearn.ensemble import ExtraTreesClassifier",
        _DETAIL_FUNCTION,
        """
        X = describe(np.concatenate([train_images, train_images[:, :, ::-1]]))
        model = ExtraTreesClassifier(500, min_samples_leaf=1, max_features=0.3, random_state=0)
        model.fit(X, np.tile(y, 2))
        views = [test_images, test_images[:, :, ::-1]]
        probabilities = sum(model.predict_proba(describe(view)) for view in views)
        labels = model.classes_[probabilities.argmax(axis=1)]
        """,
    ),
    _program(
        "k-means-windows",
        "Distances to small windows found by k-means, pooled over quarters, and a linear SVM.",
        """
        from sklearn.cluster import MiniBatchKMeans
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        from sklearn.svm import LinearSVC
        """,
        """
        def windows(images, size=5):
            cut = np.lib.stride_tricks.sliding_window_view
            view = cut(images / 255.0, (size, size), axis=(1, 2))
            return view.reshape(*view.shape[:3], -1)


        def respond(images, centres):
            w = windows(images)
            squared = (w**2).sum(-1, keepdims=True) - 2 * w @ centres.T + (centres**2).sum(1)
            distance = np.sqrt(np.maximum(squared, 0))
            active = np.maximum(distance.mean(-1, keepdims=True) - distance, 0)
            top, bottom = active[:, :4].sum(axis=1), active[:, 4:].sum(axis=1)
            quarters = [top[:, :4], top[:, 4:], bottom[:, :4], bottom[:, 4:]]
            return np.hstack([q.sum(axis=1) for q in quarters])


        sample = windows(train_images[::4]).reshape(-1, 75)[::3]
        centres = MiniBatchKMeans(100, n_init=1, random_state=0).fit(sample).cluster_centers_
        model = make_pipeline(StandardScaler(), LinearSVC(C=0.01))
        model.fit(respond(train_images, centres), y)
        labels = model.predict(respond(test_images, centres))
        """,
    ),
)
