"""The rules by which expressions of a program stand for stages.

What counts, stage by stage:

* packages imported: after the last import of a known package in the program's first imports;
* data loaded: a library's reader, on a file that is no sample submission;
* model defined: an estimator, booster or network is made (scalers, encoders and splitters are
  none);
* model trained: ``fit`` of a model, ``train`` of a booster or ``Trainer``, a cross-validation; in a
  hand-written loop, after the loop in which an optimiser stepped;
* training loss seen: ``loss.backward()``; a metric or ``score`` on rows for fitting; ``.item()`` of
  a loss; a fitted model's own loss (``loss_``, ``train_score_``, a Keras history);
* validation score seen: a metric or ``score`` on other rows; a cross-validation; ``best_score_``
  and ``oob_score_``; ``evaluate``;
* both: a hand-written formula over predictions that is assigned to, or printed beside, the name of
  a loss or score, once a library's model has been trained;
* test labels predicted: a model predicts on what comes from a test file.

Nothing here runs the program: these are candidates, and the witnesses decide while it runs.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from mle_rl.instrumentation import libraries
from mle_rl.instrumentation.dataflow import FactFinder
from mle_rl.instrumentation.facts import Facts, origins
from mle_rl.instrumentation.insertions import Check

Claim = tuple[str, str | None, Check]
"""Stage, where its value comes from, what must hold at run time."""

DEFINED: Claim = ("model_defined", None, "callee")
TRAINED: Claim = ("model_trained", None, "callee")
PREDICTED: Claim = ("test_labels_predicted", None, "callee")
LOSS: Claim = ("training_loss_seen", "result", "callee")
SCORE: Claim = ("validation_score_seen", "result", "callee")

_FORMULAS = libraries.words("ols glm logit poisson wls gls probit mixedlm negativebinomial")
"""statsmodels' functions that make a model from a formula."""

_SCORE_WORDS = re.compile(
    r"(?<![a-z])(acc|accuracy|auc|f1|score|scores|kappa|qwk|r2|corr|correlation|jaccard|"
    r"mae|mse|rmse|rmsle|mape|error|err|logloss|loss|losses|metric|cv)(?![a-z])"
)
_TRANSFORMER_NAMES = re.compile(
    r"scal|encod|vectori|tfidf|imput|tokeni|transf|select|(^|_)(le|ohe|enc|pca|svd|vec|pre\w*)(_|$)"
)
_NO_MODEL = re.compile(r"Transformer$|^FeatureUnion$|^Bernoulli(RBM)$|Mixin$|Warning$|^Parameter")
_NETWORK_PARTS = re.compile(
    r"Loss$|^(ReLU|GELU|Tanh|Sigmoid|Softmax|Dropout\w*|Flatten|LeakyReLU|SiLU|ELU|Parameter|ModuleList|"
    r"ModuleDict|Embedding\w*|BatchNorm\w*|LayerNorm|MaxPool\w*|AvgPool\w*|Identity)$"
)


def claims(node: ast.expr, finder: FactFinder) -> Iterator[Claim]:
    """What one expression may claim, in the order in which it would be credited."""
    if isinstance(node, ast.Attribute):
        yield from _attribute_claims(node, finder)
    elif isinstance(node, ast.Call):
        yield from _function_claims(node, finder)
        if isinstance(node.func, ast.Attribute):
            yield from _method_claims(node, node.func, finder)
        yield from _called_model_claims(node, finder)


def is_model_origin(name: str) -> bool:
    """Whether calling the library's thing of this dotted name makes a model."""
    library, *inner = name.split(".")
    if library not in libraries.MODEL_LIBRARIES or not inner:
        return False
    last = inner[-1]
    if last == "from_pretrained":
        return len(inner) > 1 and "Model" in inner[-2]
    if library in ("sklearn", "imblearn", "cuml"):
        if last == "make_pipeline" or last.endswith(("SearchCV", "TransformedTargetRegressor")):
            return True
        return (
            inner[0] in libraries.MODEL_SUBMODULES
            and last[:1].isupper()
            and not _NO_MODEL.search(last)
        )
    if library in ("xgboost", "lightgbm", "catboost"):
        return last == "train" or last.startswith(("XGB", "LGBM", "CatBoost"))
    if library == "torch":
        return inner[0] == "nn" and last[:1].isupper() and not _NETWORK_PARTS.search(last)
    if library in ("keras", "tensorflow", "tf_keras"):
        return last in ("Sequential", "Model") or "applications" in inner
    if library == "statsmodels":
        return last[:1].isupper() or last in _FORMULAS
    if library in ("timm", "torchvision"):
        return last == "create_model" or "models" in inner
    if library == "transformers":
        return "Model" in last or last == "pipeline"
    return last[:1].isupper() and last != "Trainer"


def is_known_package(node: ast.stmt) -> bool:
    """Whether a statement imports a package that counts."""
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and not node.level:
        names = [node.module or ""]
    else:
        return False
    return any(name.split(".")[0] in libraries.PACKAGES for name in names)


def hand_written(node: ast.stmt, finder: FactFinder) -> Iterator[tuple[ast.expr, Claim]]:
    """Formulas over predictions that a statement names, or prints beside, a loss or score."""
    if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = [t.id for t in targets if isinstance(t, ast.Name)]
        if names:
            yield from _formula(node.value, names[0], finder)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        call = node.value
        if isinstance(call.func, ast.Name) and call.func.id == "print":
            words: list[str] = []
            for part in _printed(call):
                if isinstance(part, ast.Constant):
                    words.append(str(part.value))
                else:
                    yield from _formula(part, " ".join(words), finder)


def _formula(node: ast.expr, words: str, finder: FactFinder) -> Iterator[tuple[ast.expr, Claim]]:
    facts = finder.of(node)
    words = words.lower().replace("_", " ")
    if "predicted" not in facts or not _SCORE_WORDS.search(words):
        return
    if isinstance(node, ast.Name | ast.Constant | ast.Tuple | ast.List | ast.Dict | ast.Subscript):
        return
    if any(
        claim[0] in (LOSS[0], SCORE[0])
        for part in ast.walk(node)
        for claim in _claims_of(part, finder)
    ):
        return
    stage = _loss_or_score([facts], words)[0]
    yield node, (stage, "result", "trained")


def _claims_of(node: ast.AST, finder: FactFinder) -> list[Claim]:
    return list(claims(node, finder)) if isinstance(node, ast.expr) else []


def _printed(call: ast.Call) -> Iterator[ast.expr]:
    for argument in call.args:
        if isinstance(argument, ast.JoinedStr):
            for part in argument.values:
                yield part.value if isinstance(part, ast.FormattedValue) else part
        else:
            yield argument


def _attribute_claims(node: ast.Attribute, finder: FactFinder) -> Iterator[Claim]:
    if not isinstance(node.ctx, ast.Load) or origins(finder.of(node.value)):
        return
    if node.attr in libraries.FITTED_SCORES:
        yield SCORE
    elif node.attr in libraries.FITTED_LOSSES:
        yield LOSS


def _function_claims(node: ast.Call, finder: FactFinder) -> Iterator[Claim]:
    """Claims of what was imported: readers, constructors, metrics, boosters, cross-validation."""
    for name in sorted(origins(finder.of(node.func))):
        library, last = name.split(".")[0], name.rsplit(".", 1)[-1]
        if library in libraries.READER_LIBRARIES and last in libraries.READERS:
            if not _mentions(node, "submission"):
                yield "data_loaded", None, "callee"
        elif last in libraries.CROSS_VALIDATION and library == "sklearn":
            yield TRAINED
            if last != "cross_val_predict":
                yield SCORE
        elif library in ("xgboost", "lightgbm", "catboost") and last in libraries.TRAIN_FUNCTIONS:
            if last == "train":
                yield DEFINED
            yield TRAINED
        elif library in libraries.METRIC_LIBRARIES and _is_metric(library, name, last):
            yield _loss_or_score([finder.of(a) for a in _arguments(node)])
        elif is_model_origin(name) and not _is_part(node, name, finder):
            yield DEFINED
    for name in origins(finder.of(node.func), "own"):
        if any(_is_model_base(base) for base in finder.bases(name)):
            yield DEFINED


def _is_metric(library: str, name: str, last: str) -> bool:
    if library in ("numpy", "torch"):
        return False
    if library == "scipy":
        return last in libraries.METRICS
    return last in libraries.METRICS or (
        ".metrics." in name and last.endswith(libraries.METRIC_SUFFIXES)
    )


def _is_part(node: ast.Call, name: str, finder: FactFinder) -> bool:
    """Whether a pipeline is one of steps without a model."""
    if name.rsplit(".", 1)[-1] not in ("Pipeline", "make_pipeline"):
        return False
    steps = [*node.args, *(k.value for k in node.keywords if k.arg == "steps")]
    last = steps[-1] if steps else None
    while isinstance(last, ast.List | ast.Tuple) and last.elts:
        last = last.elts[-1]
    made = set() if last is None else origins(finder.of(last), "made")
    return bool(made) and not any(is_model_origin(m) for m in made)


def _method_claims(node: ast.Call, func: ast.Attribute, finder: FactFinder) -> Iterator[Claim]:
    """Claims of methods, whatever the receiver is called; its class is checked at run time."""
    receiver, method = finder.of(func.value), func.attr
    if origins(receiver):  # a module or a class: not a method of an object
        return
    arguments = _arguments(node)
    facts = [finder.of(a) for a in arguments]
    made = origins(receiver, "made")
    network = any(m.split(".")[0] in ("keras", "tensorflow", "tf_keras") for m in made)
    if method in libraries.FIT_METHODS and _may_be_model(func.value, made):
        if not facts or not all("literal" in f for f in facts[:2]):
            yield TRAINED
            if network:
                yield LOSS
                if any(k.arg in ("validation_data", "validation_split") for k in node.keywords):
                    yield SCORE
    elif method == "train" and _is_trainer(func.value, made):
        yield TRAINED
        yield LOSS
    elif (method == "score" and facts and _may_be_model(func.value, made)) or (
        method == "evaluate" and (_may_be_model(func.value, made) or _is_trainer(func.value, made))
    ):
        yield _loss_or_score(facts)
    elif method == "backward" and not arguments:
        yield "training_loss_seen", "receiver", "callee"
    elif method == "item" and "loss" in receiver:
        yield SCORE if "held_out" in receiver else LOSS
    elif method in libraries.PREDICT_METHODS and any(
        "test" in f and not _depends_on_call(a, f, finder)
        for a, f in zip(arguments, facts, strict=True)
    ):
        yield PREDICTED


def _called_model_claims(node: ast.Call, finder: FactFinder) -> Iterator[Claim]:
    """``model(x)``: a network that is called predicts, and so does a helper of the program's."""
    called = finder.of(node.func)
    if origins(called) or not any("test" in finder.of(a) for a in _arguments(node)):
        return
    own = origins(called, "own")
    if own:
        if "predicted" in finder.of(node) and not own & finder.classes.keys():
            yield "test_labels_predicted", None, "trained"
        return
    made = origins(called, "made")
    if made:
        if any(is_model_origin(m) or _is_model_base(m) for m in made):
            yield PREDICTED
    elif re.search(r"(^|_)(model|net|network)$", _last_name(node.func)):
        yield PREDICTED


def _depends_on_call(argument: ast.expr, facts: Facts, finder: FactFinder) -> bool:
    """Whether a helper is given test rows by one call and other rows by another."""
    return finder.by_call(argument) and not facts.isdisjoint({"held_out", "fitted"})


def _may_be_model(receiver: ast.expr, made: set[str]) -> bool:
    """Whether a receiver could be a model, by what made it or, unknown, by its name."""
    library = {m for m in made if not m.startswith("own:")}
    if library:
        return any(is_model_origin(m) or _is_model_base(m) for m in library)
    if made:
        return False
    return not _TRANSFORMER_NAMES.search(_last_name(receiver).lower())


def _is_model_base(name: str) -> bool:
    """Whether a class of the program's own that derives from this is a model."""
    bases = ("Module", "LightningModule", "Model", "Learner")
    library, last = name.split(".")[0], name.rsplit(".", 1)[-1]
    return library in libraries.MODEL_LIBRARIES and (last in bases or is_model_origin(name))


def _is_trainer(receiver: ast.expr, made: set[str]) -> bool:
    if made:
        return any(m.split(".")[-1].endswith("Trainer") for m in made)
    return _last_name(receiver).lower().endswith("trainer")


def _loss_or_score(facts: list[Facts], words: str = "") -> Claim:
    """Training loss on rows for fitting, validation score on all others."""
    joined = frozenset().union(*facts)
    if "held_out" in joined or re.search(r"val|cv|oof|test", words):
        return SCORE
    if "fitted" in joined or re.search(r"train|loss", words):
        return LOSS
    return SCORE


def _last_name(node: ast.expr) -> str:
    """The last name of a receiver: ``model`` in ``model``, ``self.model`` and ``model[0]``."""
    while isinstance(node, ast.Subscript | ast.Call):
        node = node.value if isinstance(node, ast.Subscript) else node.func
    match node:
        case ast.Attribute(attr=name) | ast.Name(id=name):
            return name
    return ""


def _arguments(node: ast.Call) -> list[ast.expr]:
    return [*node.args, *(k.value for k in node.keywords)]


def _mentions(node: ast.Call, text: str) -> bool:
    parts = (n.value for a in _arguments(node) for n in ast.walk(a) if isinstance(n, ast.Constant))
    return any(isinstance(part, str) and text in part.lower() for part in parts)
