"""Decisions about features of a text column."""

from __future__ import annotations

from mle_rl.agent.grammar import families, models
from mle_rl.agent.grammar.code import Code
from mle_rl.agent.grammar.decisions import Decision, Sketch, call, choice, integer, real

_CLEANING = {
    "lower": ".str.lower()",
    "digits": '.str.replace(r"[0-9]+", " ", regex=True)',
    "symbols": '.str.replace(r"[^A-Za-z]+", " ", regex=True)',
    "underscores": '.str.replace("_", " ")',
    "camel": '.str.replace(r"([a-z])([A-Z])", r"\\1 \\2", regex=True)',
}
_VECTORIZERS = {
    "tfidf": "TfidfVectorizer",
    "count": "CountVectorizer",
    "hashing": "HashingVectorizer",
}


def _vectorizer_decisions(prefix: str, analyzer_share: float) -> tuple[Decision, ...]:
    return (
        choice(f"{prefix}.class", "tfidf", 0.80, {"count": 2, "hashing": 1}),
        choice(f"{prefix}.analyzer", None, analyzer_share, {'"char_wb"': 1, '"char"': 1}),
        choice(f"{prefix}.low", "1", 0.80, {"2": 2, "3": 1}),
        integer(f"{prefix}.high", 0.72, 2, 6),
        integer(f"{prefix}.min_df", 0.76, 2, 9),
        real(f"{prefix}.max_df", 0.86, 0.1, 0.9),
        integer(f"{prefix}.max_features", 0.78, 200, 60_000),
        choice(f"{prefix}.sublinear_tf", None, 0.80, {"True": 1}),
        choice(f"{prefix}.stop_words", None, 0.84, {'"english"': 1}),
        choice(f"{prefix}.lowercase", None, 0.86, {"False": 1}),
        choice(f"{prefix}.binary", None, 0.88, {"True": 1}),
    )


_SHARED = (
    choice("clean", None, 0.78, dict.fromkeys(_CLEANING, 1.0)),
    *_vectorizer_decisions("v1", 0.80),
    choice("union", None, 0.82, {"yes": 1}),
    *_vectorizer_decisions("v2", 0.30),
    choice("reduce", None, 0.85, {"svd": 1, "chi2": 1}),
    integer("reduce.size", 0.0, 20, 900, plain="100"),
)

CLASSIFICATION = _SHARED + models.decisions(
    families.CLASSIFIERS,
    "logistic",
    {
        "multinomial_nb": 6,
        "complement_nb": 3,
        "linear_svc": 4,
        "sgd": 3,
        "forest": 4,
        "extra_trees": 2,
        "neighbours": 3,
        "mlp": 2,
        "boosting": 1,
    },
)
REGRESSION = _SHARED + models.decisions(
    families.REGRESSORS,
    "ridge",
    {
        "linear": 4,
        "svr": 3,
        "forest": 3,
        "extra_trees": 2,
        "neighbours": 3,
        "mlp": 2,
        "boosting": 1,
    },
)


def write(code: Code, sketch: Sketch, text_column: str) -> None:
    """Write the lines that turn the text into ``X`` and ``X_test``."""
    clean = _CLEANING.get(sketch["clean"] or "", "")
    code.add(f'text = train["{text_column}"]{clean}', f'text_test = test["{text_column}"]{clean}')
    first = _vectorizer(code, sketch, "v1")
    if sketch["union"] is None:
        code.add(f"vectorizer = {first}")
    else:
        union = code.use("sklearn.pipeline", "make_union")
        code.add(
            f"vectorizer = {union}(",
            f"    {first},",
            f"    {_vectorizer(code, sketch, 'v2')},",
            ")",
        )
    again = "fit_transform" if sketch["slip.transform"] else "transform"
    code.add("X = vectorizer.fit_transform(text)", f"X_test = vectorizer.{again}(text_test)")
    if sketch["reduce"] == "svd":
        svd = code.use("sklearn.decomposition", "TruncatedSVD")
        code.add(f"svd = {call(svd, sketch['reduce.size'], random_state='0')}")
        code.add("X = svd.fit_transform(X)", "X_test = svd.transform(X_test)")
    elif sketch["reduce"] == "chi2":
        select = code.use("sklearn.feature_selection", "SelectKBest")
        chi2 = code.use("sklearn.feature_selection", "chi2")
        code.add(f"select = {call(select, chi2, k=sketch['reduce.size'])}")
        code.add("X = select.fit_transform(X, y)", "X_test = select.transform(X_test)")


def _vectorizer(code: Code, sketch: Sketch, prefix: str) -> str:
    kind, analyzer = sketch[f"{prefix}.class"], sketch[f"{prefix}.analyzer"]
    low, high = sketch[f"{prefix}.low"], sketch[f"{prefix}.high"]
    if analyzer is not None and high is None:
        high = "4"  # single characters alone are nothing that anybody writes
    spans = None if high is None else f"({low if int(low) <= int(high) else high}, {high})"
    counted = {"min_df": sketch[f"{prefix}.min_df"], "max_df": sketch[f"{prefix}.max_df"]}
    keywords = {
        "analyzer": analyzer,
        "ngram_range": spans,
        "n_features" if kind == "hashing" else "max_features": sketch[f"{prefix}.max_features"],
        **({} if kind == "hashing" else counted),
        "sublinear_tf": sketch[f"{prefix}.sublinear_tf"] if kind == "tfidf" else None,
        "stop_words": sketch[f"{prefix}.stop_words"] if analyzer is None else None,
        "lowercase": sketch[f"{prefix}.lowercase"],
        "binary": sketch[f"{prefix}.binary"],
    }
    return call(code.use("sklearn.feature_extraction.text", _VECTORIZERS[kind]), **keywords)


def words(sketch: Sketch) -> str:
    """The features in a few words, for the plan."""
    named = []
    for prefix in ("v1", "v2")[: 1 if sketch["union"] is None else 2]:
        unit = "words" if sketch[f"{prefix}.analyzer"] is None else "characters"
        kind = {"tfidf": "TF-IDF", "count": "counts", "hashing": "hashes"}[
            sketch[f"{prefix}.class"]
        ]
        named.append(f"{kind} of {unit}")
    text = " and ".join(named)
    return (
        text + {None: "", "svd": " reduced by SVD", "chi2": " selected by chi2"}[sketch["reduce"]]
    )
