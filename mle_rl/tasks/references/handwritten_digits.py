"""Reference programs for ``handwritten-digits``."""

from mle_rl.tasks.references.reference import Reference, joined, reference

_BASICS = """\
import numpy as np
import pandas as pd
"""

_LOAD = """\
train = pd.read_csv("input/train.csv")
test = pd.read_csv("input/test.csv")
train_images = np.load("input/train_images.npy")[..., 0] / 16.0
test_images = np.load("input/test_images.npy")[..., 0] / 16.0
y = train["digit"]
"""

_PIXELS = """\
X = train_images.reshape(len(train_images), -1)
X_test = test_images.reshape(len(test_images), -1)
"""

_BLOCKS = """\
def describe(images):
    blocks = images.reshape(len(images), 4, 2, 4, 2).mean(axis=(2, 4)).reshape(len(images), -1)
    return np.hstack([blocks, images.sum(axis=1), images.sum(axis=2)])


X = describe(train_images)
X_test = describe(test_images)
"""

_GRADIENTS = """\
def describe(images):
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1)))
    across = padded[:, 1:-1, 2:] - padded[:, 1:-1, :-2]
    down = padded[:, 2:, 1:-1] - padded[:, :-2, 1:-1]
    angle = np.arctan2(down, across) % np.pi
    strength = np.hypot(across, down)
    maps = []
    for k in range(4):
        near = np.maximum(np.cos(2 * (angle - k * np.pi / 4)), 0) * strength
        maps.append(near.reshape(len(images), 4, 2, 4, 2).sum(axis=(2, 4)))
    gradients = np.stack(maps, axis=1).reshape(len(images), -1)
    return np.hstack([images.reshape(len(images), -1), gradients])


X = describe(train_images)
X_test = describe(test_images)
"""

_SHIFTED = """\
def shifted(images, rows, columns):
    padded = np.pad(images, ((0, 0), (1, 1), (1, 1)))
    return padded[:, 1 + rows : 9 + rows, 1 + columns : 9 + columns]


moves = [(0, 0), (0, 1), (0, -1), (1, 0), (-1, 0)]
X = np.concatenate([shifted(train_images, *move).reshape(-1, 64) for move in moves])
X_test = test_images.reshape(-1, 64)
y = np.tile(y, len(moves))
"""

_FIT = """\
model.fit(X, y)
probabilities = model.predict_proba(X_test)
"""

_WRITE = """\
submission = pd.DataFrame(probabilities, columns=[str(digit) for digit in range(10)])
submission.insert(0, "id", test["id"])
submission.to_csv("submission.csv", index=False)
"""


def _program(name: str, plan: str, imports: str, *body: str) -> Reference:
    return reference(name, plan, joined(_BASICS, imports), _LOAD, *body, _WRITE)


def _model(name: str, plan: str, imports: str, features: str, model: str) -> Reference:
    return _program(name, plan, imports, features, model, _FIT)


REFERENCES = (
    _model(
        "class-frequencies",
        "Predict the frequency of each digit.",
        "from sklearn.dummy import DummyClassifier",
        _PIXELS,
        'model = DummyClassifier(strategy="prior")',
    ),
    _model(
        "naive-bayes",
        "Gaussian naive Bayes on pixels.",
        "from sklearn.naive_bayes import GaussianNB",
        _PIXELS,
        "model = GaussianNB()",
    ),
    _model(
        "naive-bayes-smoothed",
        "Gaussian naive Bayes with a floor under the variances.",
        "from sklearn.naive_bayes import GaussianNB",
        _PIXELS,
        "model = GaussianNB(var_smoothing=0.3)",
    ),
    _model(
        "bernoulli-bayes",
        "Ink or no ink, Bernoulli naive Bayes.",
        "from sklearn.naive_bayes import BernoulliNB",
        _PIXELS,
        "model = BernoulliNB(binarize=0.5)",
    ),
    _model(
        "blocks-logistic",
        "Ink in blocks, rows and columns, logistic regression.",
        """
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        """,
        _BLOCKS,
        "model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))",
    ),
    _model(
        "decision-tree",
        "A decision tree on pixels.",
        "from sklearn.tree import DecisionTreeClassifier",
        _PIXELS,
        "model = DecisionTreeClassifier(random_state=0)",
    ),
    _model(
        "small-tree",
        "A decision tree with leaves of ten or more.",
        "from sklearn.tree import DecisionTreeClassifier",
        _PIXELS,
        "model = DecisionTreeClassifier(min_samples_leaf=10, random_state=0)",
    ),
    _model(
        "nearest-neighbours",
        "Five nearest neighbours on pixels.",
        "from sklearn.neighbors import KNeighborsClassifier",
        _PIXELS,
        "model = KNeighborsClassifier()",
    ),
    _model(
        "many-neighbours",
        "Fifteen neighbours weighted by distance.",
        "from sklearn.neighbors import KNeighborsClassifier",
        _PIXELS,
        'model = KNeighborsClassifier(15, weights="distance")',
    ),
    _model(
        "linear-discriminant",
        "Linear discriminant analysis.",
        "from sklearn.discriminant_analysis import LinearDiscriminantAnalysis",
        _PIXELS,
        "model = LinearDiscriminantAnalysis()",
    ),
    _model(
        "shrunk-linear-discriminant",
        "Linear discriminant analysis with shrunk covariance.",
        "from sklearn.discriminant_analysis import LinearDiscriminantAnalysis",
        _PIXELS,
        'model = LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")',
    ),
    _model(
        "quadratic-discriminant",
        "Quadratic discriminant analysis with strongly shrunk covariances.",
        "from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis",
        _PIXELS,
        'model = QuadraticDiscriminantAnalysis(solver="eigen", shrinkage=0.3)',
    ),
    _model(
        "logistic",
        "Logistic regression on pixels.",
        "from sklearn.linear_model import LogisticRegression",
        _PIXELS,
        "model = LogisticRegression(max_iter=1000)",
    ),
    _model(
        "logistic-scaled",
        "Logistic regression on standardised pixels.",
        """
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        """,
        _PIXELS,
        "model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000))",
    ),
    _model(
        "random-forest",
        "A random forest with default settings.",
        "from sklearn.ensemble import RandomForestClassifier",
        _PIXELS,
        "model = RandomForestClassifier(random_state=0)",
    ),
    _model(
        "extra-trees",
        "Five hundred extremely randomised trees.",
        "from sklearn.ensemble import ExtraTreesClassifier",
        _PIXELS,
        "model = ExtraTreesClassifier(500, random_state=0)",
    ),
    _model(
        "histogram-boosting",
        "Histogram gradient boosting.",
        "from sklearn.ensemble import HistGradientBoostingClassifier",
        _PIXELS,
        "model = HistGradientBoostingClassifier(max_iter=40, random_state=0)",
    ),
    _model(
        "mlp",
        "A small neural network.",
        "from sklearn.neural_network import MLPClassifier",
        _PIXELS,
        "model = MLPClassifier(hidden_layer_sizes=(64,), max_iter=300, random_state=0)",
    ),
    _model(
        "mlp-regularised",
        "A larger neural network with weight decay.",
        "from sklearn.neural_network import MLPClassifier",
        _PIXELS,
        """
        model = MLPClassifier(
            hidden_layer_sizes=(200,), alpha=0.3, max_iter=200, random_state=0
        )
        """,
    ),
    _model(
        "svm",
        "Support vector machine, calibrated by three-fold cross-validation.",
        """
        from sklearn.calibration import CalibratedClassifierCV
        from sklearn.svm import SVC
        """,
        _PIXELS,
        "model = CalibratedClassifierCV(SVC(C=10), cv=3)",
    ),
    _model(
        "svm-jointly-calibrated",
        "Support vector machine, one temperature found by cross-validation.",
        """
        from sklearn.calibration import CalibratedClassifierCV
        from sklearn.svm import SVC
        """,
        _PIXELS,
        'model = CalibratedClassifierCV(SVC(C=10), method="temperature", cv=5)',
    ),
    _model(
        "kernel-approximation",
        "Random Fourier features and logistic regression.",
        """
        from sklearn.kernel_approximation import RBFSampler
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        """,
        _PIXELS,
        """
        model = make_pipeline(
            RBFSampler(gamma=0.03, n_components=1000, random_state=0),
            LogisticRegression(C=30, max_iter=500),
        )
        """,
    ),
    _model(
        "gaussian-process",
        "Gaussian process classification, one against the rest.",
        """
        from sklearn.gaussian_process import GaussianProcessClassifier
        from sklearn.gaussian_process.kernels import RBF
        """,
        _PIXELS,
        "model = GaussianProcessClassifier(30.0 * RBF(2.5), optimizer=None)",
    ),
    _model(
        "gradients-logistic",
        "Oriented gradients beside pixels, logistic regression.",
        """
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        """,
        _GRADIENTS,
        "model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000))",
    ),
    _model(
        "gradients-discriminant",
        "Oriented gradients beside pixels, shrunk linear discriminant.",
        "from sklearn.discriminant_analysis import LinearDiscriminantAnalysis",
        _GRADIENTS,
        'model = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.1)',
    ),
    _model(
        "gradients-svm",
        "Oriented gradients beside pixels, calibrated support vector machine.",
        """
        from sklearn.calibration import CalibratedClassifierCV
        from sklearn.svm import SVC
        """,
        _GRADIENTS,
        'model = CalibratedClassifierCV(SVC(C=10), method="temperature", cv=5)',
    ),
    _model(
        "gradients-searched-logistic",
        "Oriented gradients beside pixels, penalty found by cross-validation.",
        """
        from sklearn.linear_model import LogisticRegression
        from sklearn.model_selection import GridSearchCV
        """,
        _GRADIENTS,
        """
        model = GridSearchCV(
            LogisticRegression(max_iter=500), {"C": [0.3, 1, 3, 10]}, scoring="neg_log_loss", cv=4
        )
        """,
    ),
    _model(
        "shifted-logistic",
        "Each picture also moved by one pixel, logistic regression.",
        "from sklearn.linear_model import LogisticRegression",
        _SHIFTED,
        "model = LogisticRegression(C=3, max_iter=500)",
    ),
    _model(
        "shifted-svm",
        "Each picture also moved by one pixel, calibrated support vector machine.",
        """
        from sklearn.calibration import CalibratedClassifierCV
        from sklearn.svm import SVC
        """,
        _SHIFTED,
        'model = CalibratedClassifierCV(SVC(C=10), method="temperature", cv=3)',
    ),
    _model(
        "shifted-mlp",
        "Each picture also moved by one pixel, a neural network with weight decay.",
        "from sklearn.neural_network import MLPClassifier",
        _SHIFTED,
        """
        model = MLPClassifier(
            hidden_layer_sizes=(100,), alpha=0.1, max_iter=60, random_state=0
        )
        """,
    ),
    _model(
        "gradients-bagging",
        "Oriented gradients, logistic regression on fifty resamples of rows and columns.",
        """
        from sklearn.ensemble import BaggingClassifier
        from sklearn.linear_model import LogisticRegression
        """,
        _GRADIENTS,
        """
        model = BaggingClassifier(
            LogisticRegression(C=3, max_iter=300),
            50,
            max_features=0.6,
            random_state=0,
        )
        """,
    ),
    _program(
        "gradients-blend",
        "Average a linear model, an SVM and six networks on oriented gradients.",
        """
        from sklearn.calibration import CalibratedClassifierCV
        from sklearn.linear_model import LogisticRegression
        from sklearn.neural_network import MLPClassifier
        from sklearn.svm import SVC
        """,
        _GRADIENTS,
        """
        networks = [
            MLPClassifier(hidden_layer_sizes=(150,), alpha=0.3, max_iter=150, random_state=seed)
            for seed in range(6)
        ]
        svm = CalibratedClassifierCV(SVC(C=10), method="temperature", cv=10)
        linear = LogisticRegression(C=3, max_iter=500)
        weighted = [(0.1, network) for network in networks] + [(0.3, svm), (0.1, linear)]
        logits = 0
        for weight, model in weighted:
            logits = logits + weight * np.log(model.fit(X, y).predict_proba(X_test) + 1e-5)
        probabilities = np.exp(1.2 * logits)
        probabilities /= probabilities.sum(axis=1, keepdims=True)
        """,
    ),
)
