"""Decisions about features of small images."""

from __future__ import annotations

from mle_rl.agent.grammar import families, models
from mle_rl.agent.grammar.code import Code
from mle_rl.agent.grammar.decisions import Sketch, call, choice, integer

_COLOURS = {
    "gray": "images = images.mean(axis=3, keepdims=True)",
    "chroma": "images = images / (images.sum(axis=3, keepdims=True) + 0.01)",
    "centred": "images = images - images.mean(axis=(1, 2), keepdims=True)",
    "root": "images = np.sqrt(images)",
}

_SHARED = (
    choice("colour", None, 0.78, dict.fromkeys(_COLOURS, 1.0)),
    choice("shrink", None, 0.80, {"2": 3, "3": 1, "4": 2}),
    choice("pixels", "yes", 0.84, {None: 1}),
    choice("moments", None, 0.80, {"yes": 1}),
    integer("histogram", 0.82, 4, 40),
    choice("gradients", None, 0.84, {"mean": 1, "pixels": 1}),
    integer("orientations", 0.86, 4, 16),
    integer("spectrum", 0.88, 2, 8),
    integer("percentiles", 0.88, 3, 12),
    choice("rows", None, 0.90, {"yes": 1}),
    choice("flips", None, 0.88, {"yes": 1}),
    choice("scale", None, 0.76, {"StandardScaler": 3, "MinMaxScaler": 1, "QuantileTransformer": 1}),
    integer("pca", 0.84, 5, 90),
    choice("pca.whiten", None, 0.70, {"True": 1}),
)

CLASSIFICATION = _SHARED + models.decisions(
    families.CLASSIFIERS,
    "logistic",
    {
        "forest": 6,
        "extra_trees": 3,
        "neighbours": 4,
        "svc": 4,
        "gaussian_nb": 2,
        "mlp": 3,
        "boosting": 2,
        "discriminant": 2,
        "sgd": 1,
    },
)
REGRESSION = _SHARED + models.decisions(
    families.REGRESSORS,
    "ridge",
    {
        "linear": 4,
        "forest": 6,
        "extra_trees": 3,
        "neighbours": 4,
        "svr": 4,
        "mlp": 3,
        "boosting": 2,
    },
)


def write(code: Code, sketch: Sketch) -> None:
    """Write the lines that turn the images into ``X`` and ``X_test``."""
    code.add("def features(images):", "    images = images / 255.0")
    if sketch["colour"] is not None:
        code.add("    " + _COLOURS[sketch["colour"]])
    code.add("    parts = []", *("    " + line for line in _parts(sketch)))
    code.add("    return np.hstack(parts)" if not sketch["slip.transform"] else "    return images")
    code.add('images = np.load("input/train_images.npy")')
    if sketch["flips"] is not None:
        code.add(
            "images = np.concatenate([images, images[:, :, ::-1]])", "y = np.concatenate([y, y])"
        )
    code.add("X = features(images)", 'X_test = features(np.load("input/test_images.npy"))')
    steps = []
    if sketch["scale"] is not None:
        steps.append(f"{code.use('sklearn.preprocessing', sketch['scale'])}()")
    if sketch["pca"] is not None:
        pca = code.use("sklearn.decomposition", "PCA")
        steps.append(call(pca, sketch["pca"], whiten=sketch["pca.whiten"], random_state="0"))
    if steps:
        code.add(f"prepare = {code.use('sklearn.pipeline', 'make_pipeline')}({', '.join(steps)})")
        code.add("X = prepare.fit_transform(X)", "X_test = prepare.transform(X_test)")


def _parts(sketch: Sketch) -> list[str]:
    """Lines that fill ``parts``; whoever decided for nothing else takes the pixels after all."""
    step = sketch["shrink"]
    small = "images" if step is None else f"images[:, ::{step}, ::{step}]"
    pixels = [f"parts.append({small}.reshape(len(images), -1))"]
    others = _summaries(sketch) + _gradient_parts(sketch)
    return others if others and sketch["pixels"] is None else pixels + others


def _summaries(sketch: Sketch) -> list[str]:
    lines = []
    if sketch["moments"] is not None:
        lines.append("parts.append(images.mean(axis=(1, 2)))")
        lines.append("parts.append(images.std(axis=(1, 2)))")
    if sketch["histogram"] is not None:
        lines.append(f"edges = np.linspace(images.min(), images.max(), {sketch['histogram']})")
        lines.append("for low, high in zip(edges[:-1], edges[1:]):")
        lines.append("    parts.append(((images >= low) & (images < high)).mean(axis=(1, 2)))")
    if sketch["percentiles"] is not None:
        lines.append(f"levels = np.linspace(0, 100, {sketch['percentiles']})")
        lines.append("parts.append(np.hstack(list(np.percentile(images, levels, axis=(1, 2)))))")
    if sketch["rows"] is not None:
        lines.append("parts.append(images.mean(axis=1).reshape(len(images), -1))")
        lines.append("parts.append(images.mean(axis=2).reshape(len(images), -1))")
    return lines


def _gradient_parts(sketch: Sketch) -> list[str]:
    lines = []
    if sketch["gradients"] is not None or sketch["orientations"] is not None:
        lines.append("gray = images.mean(axis=3)")
        lines.append("down, right = np.gradient(gray, axis=(1, 2))")
        lines.append("strength = np.hypot(down, right)")
    if sketch["gradients"] == "mean":
        lines.append("parts.append(strength.mean(axis=(1, 2))[:, None])")
        lines.append("parts.append(strength.std(axis=(1, 2))[:, None])")
    elif sketch["gradients"] == "pixels":
        lines.append("parts.append(strength.reshape(len(images), -1))")
    if sketch["orientations"] is not None:
        lines.append(
            "angle = ((np.arctan2(down, right) / np.pi + 1) * "
            f"{sketch['orientations']} / 2).astype(int)"
        )
        lines.append(f"for bin in range({sketch['orientations']}):")
        lines.append("    parts.append((strength * (angle == bin)).mean(axis=(1, 2))[:, None])")
    if sketch["spectrum"] is not None:
        size = sketch["spectrum"]
        lines.append(f"waves = np.abs(np.fft.rfft2(images, axes=(1, 2)))[:, :{size}, :{size}]")
        lines.append("parts.append(np.log1p(waves).reshape(len(images), -1))")
    return lines


def words(sketch: Sketch) -> str:
    """The features in a few words, for the plan."""
    parts = {
        "pixels": "pixels",
        "moments": "colour moments",
        "histogram": "histograms",
        "percentiles": "percentiles",
        "rows": "row and column means",
        "gradients": "gradients",
        "orientations": "orientations",
        "spectrum": "a spectrum",
    }
    named = [text for key, text in parts.items() if sketch[key] is not None] or ["pixels"]
    return ", ".join(named) + (" with PCA" if sketch["pca"] is not None else "")
