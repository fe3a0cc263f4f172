"""Reference programs for ``terrain-height``."""

from mle_rl.tasks.references.reference import Reference, joined, reference

_BASICS = """\
import numpy as np
import pandas as pd
"""

_LOAD = """\
train = pd.read_csv("input/train.csv")
test = pd.read_csv("input/test.csv")
train_images = np.load("input/train_images.npy").astype(float)[..., 0] - 128
test_images = np.load("input/test_images.npy").astype(float)[..., 0] - 128
y = train["height"]
"""

_PIXELS = """\
X = train_images.reshape(len(train_images), -1)
X_test = test_images.reshape(len(test_images), -1)
"""

_SLOPES = """\
def describe(images):
    across = np.diff(images, axis=2)
    down = np.diff(images, axis=1)
    return np.column_stack(
        [
            images.std(axis=(1, 2)),
            np.ptp(images, axis=(1, 2)),
            np.abs(across).mean(axis=(1, 2)),
            np.abs(down).mean(axis=(1, 2)),
            across.mean(axis=(1, 2)),
            down.mean(axis=(1, 2)),
        ]
    )


X = describe(train_images)
X_test = describe(test_images)
"""

_SHAPE = """\
def describe(images):
    across = np.diff(images, axis=2)
    down = np.diff(images, axis=1)
    inner = images[:, 1:-1, 1:-1]
    around = images[:, :-2, 1:-1] + images[:, 2:, 1:-1] + images[:, 1:-1, :-2] + images[:, 1:-1, 2:]
    curvature = around - 4 * inner
    rows, columns = np.mgrid[0:8, 0:8] - 3.5
    design = np.column_stack([rows.ravel(), columns.ravel(), np.ones(64)])
    flat = images.reshape(len(images), -1)
    plane = np.linalg.lstsq(design, flat.T, rcond=None)[0]
    roughness = (flat - (design @ plane).T).std(axis=1)
    steepness = np.hypot(plane[0], plane[1])
    quantiles = np.quantile(flat, [0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0], axis=1).T
    spread = flat.std(axis=1)
    skewness = (flat**3).mean(axis=1) / (spread**3 + 1)
    return np.column_stack(
        [
            quantiles,
            spread,
            np.log1p(spread),
            skewness,
            roughness,
            np.log1p(roughness),
            steepness,
            plane[0],
            plane[1],
            np.abs(across).mean(axis=(1, 2)),
            np.abs(down).mean(axis=(1, 2)),
            np.abs(across).max(axis=(1, 2)),
            np.abs(down).max(axis=(1, 2)),
            np.abs(curvature).mean(axis=(1, 2)),
            curvature.std(axis=(1, 2)),
            curvature.max(axis=(1, 2)),
            curvature.min(axis=(1, 2)),
            (across == 0).mean(axis=(1, 2)),
            (np.abs(down) <= 1).mean(axis=(1, 2)),
        ]
    )


X = describe(train_images)
X_test = describe(test_images)
"""

_FIT = """\
model.fit(X, y)
height = model.predict(X_test)
"""

_WRITE = """\
pd.DataFrame({"id": test["id"], "height": height}).to_csv("submission.csv", index=False)
"""


def _program(name: str, plan: str, imports: str, *body: str) -> Reference:
    return reference(name, plan, joined(_BASICS, imports), _LOAD, *body, _WRITE)


def _model(name: str, plan: str, imports: str, features: str, model: str) -> Reference:
    return _program(name, plan, imports, features, model, _FIT)


REFERENCES = (
    _program(
        "noise",
        "Draw heights at random from the training rows.",
        "",
        "height = np.random.default_rng(0).choice(y, len(test))",
    ),
    _program(
        "relief",
        "The larger the relief, the higher.",
        "",
        "height = np.ptp(test_images, axis=(1, 2))",
    ),
    _program(
        "log-relief",
        "A line in the logarithm of the relief.",
        "",
        """
        relief = np.log1p(np.ptp(train_images, axis=(1, 2)))
        slope, intercept = np.polyfit(relief, y, 1)
        height = slope * np.log1p(np.ptp(test_images, axis=(1, 2))) + intercept
        """,
    ),
    _model(
        "pixels-linear",
        "Raw pixels, linear regression.",
        "from sklearn.linear_model import LinearRegression",
        _PIXELS,
        "model = LinearRegression()",
    ),
    _model(
        "pixels-ridge",
        "Raw pixels, ridge regression on scaled columns.",
        """
        from sklearn.linear_model import Ridge
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        """,
        _PIXELS,
        "model = make_pipeline(StandardScaler(), Ridge(alpha=100))",
    ),
    _model(
        "pixels-nearest-neighbours",
        "Raw pixels, ten nearest neighbours.",
        "from sklearn.neighbors import KNeighborsRegressor",
        _PIXELS,
        "model = KNeighborsRegressor(10)",
    ),
    _model(
        "pixels-tree",
        "Raw pixels, a decision tree.",
        "from sklearn.tree import DecisionTreeRegressor",
        _PIXELS,
        "model = DecisionTreeRegressor(random_state=0)",
    ),
    _model(
        "pixels-svr",
        "Raw pixels, support vector regression.",
        """
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        from sklearn.svm import SVR
        """,
        _PIXELS,
        "model = make_pipeline(StandardScaler(), SVR(C=100))",
    ),
    _model(
        "pixels-mlp",
        "Raw pixels, a small neural network.",
        """
        from sklearn.neural_network import MLPRegressor
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        """,
        _PIXELS,
        """
        model = make_pipeline(
            StandardScaler(),
            MLPRegressor(
                hidden_layer_sizes=(64,),
                learning_rate_init=0.01,
                alpha=1.0,
                max_iter=100,
                random_state=0,
            ),
        )
        """,
    ),
    _model(
        "pixels-random-forest",
        "Raw pixels, random forest.",
        "from sklearn.ensemble import RandomForestRegressor",
        _PIXELS,
        "model = RandomForestRegressor(max_features=0.3, random_state=0)",
    ),
    _model(
        "pixels-extra-trees",
        "Raw pixels, extremely randomised trees.",
        "from sklearn.ensemble import ExtraTreesRegressor",
        _PIXELS,
        "model = ExtraTreesRegressor(300, max_features=0.5, random_state=0)",
    ),
    _model(
        "pixels-boosting",
        "Raw pixels, gradient boosting.",
        "from sklearn.ensemble import GradientBoostingRegressor",
        _PIXELS,
        "model = GradientBoostingRegressor(max_features=0.3, random_state=0)",
    ),
    _model(
        "components-svr",
        "Ten principal components, support vector regression.",
        """
        from sklearn.decomposition import PCA
        from sklearn.pipeline import make_pipeline
        from sklearn.svm import SVR
        """,
        _PIXELS,
        "model = make_pipeline(PCA(10, whiten=True, random_state=0), SVR(C=100))",
    ),
    _model(
        "squares-ridge",
        "Pixels and their products after principal components, ridge regression.",
        """
        from sklearn.decomposition import PCA
        from sklearn.linear_model import Ridge
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import PolynomialFeatures, StandardScaler
        """,
        _PIXELS,
        """
        model = make_pipeline(
            PCA(15, random_state=0), PolynomialFeatures(2), StandardScaler(), Ridge(alpha=100)
        )
        """,
    ),
    _model(
        "slopes-linear",
        "Spread, relief and mean slopes, linear regression.",
        "from sklearn.linear_model import LinearRegression",
        _SLOPES,
        "model = LinearRegression()",
    ),
    _model(
        "slopes-nearest-neighbours",
        "Spread, relief and mean slopes, nearest neighbours.",
        """
        from sklearn.neighbors import KNeighborsRegressor
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        """,
        _SLOPES,
        "model = make_pipeline(StandardScaler(), KNeighborsRegressor(20))",
    ),
    _model(
        "slopes-svr",
        "Spread, relief and mean slopes, support vector regression.",
        """
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        from sklearn.svm import SVR
        """,
        _SLOPES,
        "model = make_pipeline(StandardScaler(), SVR(C=100))",
    ),
    _model(
        "slopes-random-forest",
        "Spread, relief and mean slopes, random forest.",
        "from sklearn.ensemble import RandomForestRegressor",
        _SLOPES,
        "model = RandomForestRegressor(random_state=0)",
    ),
    _model(
        "slopes-boosting",
        "Spread, relief and mean slopes, gradient boosting.",
        "from sklearn.ensemble import GradientBoostingRegressor",
        _SLOPES,
        "model = GradientBoostingRegressor(random_state=0)",
    ),
    _model(
        "shape-ridge",
        "Quantiles, plane, roughness and curvature, ridge regression.",
        """
        from sklearn.linear_model import RidgeCV
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        """,
        _SHAPE,
        "model = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-1, 3, 9)))",
    ),
    _model(
        "shape-polynomial-ridge",
        "Products of the shape statistics, ridge regression.",
        """
        from sklearn.linear_model import RidgeCV
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import PolynomialFeatures, QuantileTransformer
        """,
        _SHAPE,
        """
        model = make_pipeline(
            QuantileTransformer(n_quantiles=200, output_distribution="normal", random_state=0),
            PolynomialFeatures(2),
            RidgeCV(np.logspace(1, 5, 9)),
        )
        """,
    ),
    _model(
        "shape-nearest-neighbours",
        "Shape statistics, nearest neighbours weighted by distance.",
        """
        from sklearn.neighbors import KNeighborsRegressor
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        """,
        _SHAPE,
        'model = make_pipeline(StandardScaler(), KNeighborsRegressor(25, weights="distance"))',
    ),
    _model(
        "shape-svr",
        "Shape statistics, support vector regression.",
        """
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import QuantileTransformer
        from sklearn.svm import SVR
        """,
        _SHAPE,
        """
        model = make_pipeline(
            QuantileTransformer(n_quantiles=200, output_distribution="normal", random_state=0),
            SVR(C=100, gamma=0.01),
        )
        """,
    ),
    _model(
        "shape-gaussian-process",
        "Shape statistics, a Gaussian process.",
        """
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import RBF, WhiteKernel
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        """,
        _SHAPE,
        """
        model = make_pipeline(
            StandardScaler(),
            GaussianProcessRegressor(
                RBF(5.0) + WhiteKernel(0.5), optimizer=None, normalize_y=True
            ),
        )
        """,
    ),
    _model(
        "shape-random-forest",
        "Shape statistics, random forest with leaves of three.",
        "from sklearn.ensemble import RandomForestRegressor",
        _SHAPE,
        """
        model = RandomForestRegressor(
            300, min_samples_leaf=3, max_features=0.4, random_state=0
        )
        """,
    ),
    _model(
        "shape-extra-trees",
        "Shape statistics, extremely randomised trees with leaves of three.",
        "from sklearn.ensemble import ExtraTreesRegressor",
        _SHAPE,
        """
        model = ExtraTreesRegressor(
            400, min_samples_leaf=3, max_features=0.6, random_state=0
        )
        """,
    ),
    _model(
        "shape-boosting",
        "Shape statistics, slow gradient boosting on half of the rows per tree.",
        "from sklearn.ensemble import GradientBoostingRegressor",
        _SHAPE,
        """
        model = GradientBoostingRegressor(
            n_estimators=500,
            learning_rate=0.02,
            max_depth=4,
            subsample=0.5,
            max_features=0.3,
            random_state=0,
        )
        """,
    ),
    _model(
        "shape-stacking",
        "Stack ridge regression, a support vector machine and trees.",
        """
        from sklearn.ensemble import ExtraTreesRegressor, StackingRegressor
        from sklearn.linear_model import RidgeCV
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        from sklearn.svm import SVR
        """,
        _SHAPE,
        """
        model = StackingRegressor(
            [
                ("ridge", make_pipeline(StandardScaler(), RidgeCV(np.logspace(-1, 3, 9)))),
                ("svm", make_pipeline(StandardScaler(), SVR(C=100, gamma=0.01))),
                ("trees", ExtraTreesRegressor(300, min_samples_leaf=3, random_state=0)),
            ],
            RidgeCV(),
            cv=5,
        )
        """,
    ),
    _program(
        "turned-boosting",
        "Eight orientations of every square, averaged at the end; gradient boosting.",
        "from sklearn.ensemble import GradientBoostingRegressor",
        _SHAPE,
        """
        def turned(images):
            quarter_turns = [np.rot90(images, k, axes=(1, 2)) for k in range(4)]
            return quarter_turns + [view[:, :, ::-1] for view in quarter_turns]


        model = GradientBoostingRegressor(
            n_estimators=200,
            learning_rate=0.05,
            max_depth=4,
            subsample=0.3,
            max_features=0.3,
            random_state=0,
        )
        model.fit(np.concatenate([describe(view) for view in turned(train_images)]), np.tile(y, 8))
        height = np.mean([model.predict(describe(view)) for view in turned(test_images)], axis=0)
        """,
    ),
    _program(
        "shape-blend",
        "Average a Gaussian process, a support vector machine, trees and boosting.",
        """
        from sklearn.ensemble import ExtraTreesRegressor, GradientBoostingRegressor
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import RBF, WhiteKernel
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        from sklearn.svm import SVR
        """,
        _SHAPE,
        """
        models = [
            make_pipeline(
                StandardScaler(),
                GaussianProcessRegressor(
                    RBF(5.0) + WhiteKernel(0.5), optimizer=None, normalize_y=True
                ),
            ),
            make_pipeline(StandardScaler(), SVR(C=100, gamma=0.01)),
            ExtraTreesRegressor(400, min_samples_leaf=3, max_features=0.6, random_state=0),
        ]
        models += [
            GradientBoostingRegressor(
                n_estimators=400,
                learning_rate=0.02,
                max_depth=4,
                subsample=0.5,
                max_features=0.2,
                random_state=seed,
            )
            for seed in range(3)
        ]
        height = sum(model.fit(X, y).predict(X_test) for model in models)
        """,
    ),
)
