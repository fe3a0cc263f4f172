"""Reference programs for ``function-length``."""

from mle_rl.tasks.references.reference import Reference, joined, reference

_BASICS = """\
import numpy as np
import pandas as pd
"""

_LOAD = """\
train = pd.read_csv("input/train.csv")
test = pd.read_csv("input/test.csv")
text, text_test = train["text"], test["text"]
y = train["grade"]
"""

_COUNTS = """\
def describe(text):
    patterns = {
        "colons": ":",
        "backticks": "`",
        "dashes": "--",
        "optional": "optional",
        "default": "[Dd]efault",
        "arrays": "array",
        "none": "None",
        "returns": "Returns",
        "raises": "Raises",
        "examples": ">>>",
        "notes": "Notes",
        "references": "References",
        "literals": "``",
        "if": r"\\bif\\b",
        "masked": "LIB",
    }
    counts = {name: text.str.count(pattern) for name, pattern in patterns.items()}
    counts["length"] = text.str.len()
    counts["words"] = text.str.split().str.len()
    return np.log1p(pd.DataFrame(counts))


"""

_LABELS = """\
model.fit(text, y)
grade = model.predict(text_test)
"""

_ROUND = """\
model.fit(text, y)
grade = np.clip(np.rint(model.predict(text_test)), 1, 5).astype(int)
"""

_CUT_FUNCTION = """\
def cut(values):
    # Cut the predictions so that grades are as frequent as in training.
    shares = y.value_counts(normalize=True).sort_index().cumsum().iloc[:-1]
    return 1 + np.searchsorted(np.quantile(values, shares), values)
"""

_CUT = """\
model.fit(text, y)
grade = cut(model.predict(text_test))
"""

_WRITE = """\
pd.DataFrame({"id": test["id"], "grade": grade}).to_csv("submission.csv", index=False)
"""


def _program(name: str, plan: str, imports: str, *body: str) -> Reference:
    return reference(name, plan, joined(_BASICS, imports), _LOAD, *body, _WRITE)


def _classifier(name: str, plan: str, imports: str, model: str) -> Reference:
    return _program(name, plan, imports, model, _LABELS)


def _rounded(name: str, plan: str, imports: str, model: str) -> Reference:
    return _program(name, plan, imports, model, _ROUND)


def _cut(name: str, plan: str, imports: str, model: str) -> Reference:
    return _program(name, plan, imports, _CUT_FUNCTION, model, _CUT)


REFERENCES = (
    _program(
        "most-frequent",
        "Predict the most frequent grade.",
        "",
        "grade = np.full(len(test), y.mode()[0])",
    ),
    _program(
        "by-length",
        "Cut the length of the docstring into grades.",
        "",
        _CUT_FUNCTION,
        "grade = cut(text_test.str.len())",
    ),
    _classifier(
        "counts-naive-bayes",
        "Count words and fit naive Bayes.",
        """
        from sklearn.feature_extraction.text import CountVectorizer
        from sklearn.naive_bayes import MultinomialNB
        from sklearn.pipeline import make_pipeline
        """,
        "model = make_pipeline(CountVectorizer(), MultinomialNB())",
    ),
    _classifier(
        "tfidf-naive-bayes",
        "TF-IDF and complement naive Bayes.",
        """
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.naive_bayes import ComplementNB
        from sklearn.pipeline import make_pipeline
        """,
        "model = make_pipeline(TfidfVectorizer(), ComplementNB())",
    ),
    _classifier(
        "tfidf-logistic",
        "TF-IDF and logistic regression on the grades as classes.",
        """
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        """,
        "model = make_pipeline(TfidfVectorizer(), LogisticRegression(max_iter=1000))",
    ),
    _classifier(
        "tfidf-balanced-logistic",
        "TF-IDF and logistic regression with balanced classes.",
        """
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        """,
        """
        model = make_pipeline(
            TfidfVectorizer(), LogisticRegression(class_weight="balanced", max_iter=1000)
        )
        """,
    ),
    _classifier(
        "bigrams-svm",
        "Words and pairs of words, linear support vector machine.",
        """
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.pipeline import make_pipeline
        from sklearn.svm import LinearSVC
        """,
        """
        model = make_pipeline(
            TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True), LinearSVC(C=0.3)
        )
        """,
    ),
    _classifier(
        "tfidf-nearest-neighbours",
        "Nearest neighbours by cosine distance of TF-IDF vectors.",
        """
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.neighbors import KNeighborsClassifier
        from sklearn.pipeline import make_pipeline
        """,
        'model = make_pipeline(TfidfVectorizer(), KNeighborsClassifier(15, metric="cosine"))',
    ),
    _classifier(
        "tfidf-tree",
        "TF-IDF and a decision tree.",
        """
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.pipeline import make_pipeline
        from sklearn.tree import DecisionTreeClassifier
        """,
        """
        model = make_pipeline(
            TfidfVectorizer(max_features=1000),
            DecisionTreeClassifier(min_samples_leaf=5, random_state=0),
        )
        """,
    ),
    _classifier(
        "tfidf-random-forest",
        "TF-IDF and a random forest on the grades as classes.",
        """
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.pipeline import make_pipeline
        """,
        """
        model = make_pipeline(TfidfVectorizer(min_df=2), RandomForestClassifier(random_state=0))
        """,
    ),
    _rounded(
        "rounded-ridge",
        "TF-IDF, ridge regression, predictions rounded.",
        """
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import Ridge
        from sklearn.pipeline import make_pipeline
        """,
        "model = make_pipeline(TfidfVectorizer(), Ridge())",
    ),
    _rounded(
        "rounded-bigrams-ridge",
        "Words and pairs of words, ridge regression, predictions rounded.",
        """
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import Ridge
        from sklearn.pipeline import make_pipeline
        """,
        """
        model = make_pipeline(
            TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True), Ridge(alpha=0.5)
        )
        """,
    ),
    _rounded(
        "rounded-characters-ridge",
        "Character n-grams, ridge regression, predictions rounded.",
        """
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import Ridge
        from sklearn.pipeline import make_pipeline
        """,
        """
        model = make_pipeline(
            TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), sublinear_tf=True),
            Ridge(alpha=0.5),
        )
        """,
    ),
    _rounded(
        "rounded-svr",
        "Words and pairs of words, linear support vector regression, rounded.",
        """
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.pipeline import make_pipeline
        from sklearn.svm import LinearSVR
        """,
        """
        model = make_pipeline(
            TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True),
            LinearSVR(C=0.3, random_state=0),
        )
        """,
    ),
    _rounded(
        "rounded-latent-boosting",
        "Latent dimensions of TF-IDF, histogram boosting, rounded.",
        """
        from sklearn.decomposition import TruncatedSVD
        from sklearn.ensemble import HistGradientBoostingRegressor
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.pipeline import make_pipeline
        """,
        """
        model = make_pipeline(
            TfidfVectorizer(sublinear_tf=True),
            TruncatedSVD(50, random_state=0),
            HistGradientBoostingRegressor(max_iter=60, random_state=0),
        )
        """,
    ),
    _cut(
        "cut-ridge",
        "TF-IDF, ridge regression, predictions cut to the frequencies of the grades.",
        """
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import Ridge
        from sklearn.pipeline import make_pipeline
        """,
        "model = make_pipeline(TfidfVectorizer(), Ridge())",
    ),
    _cut(
        "cut-bigrams-ridge",
        "Words and pairs of words, ridge regression, cut to the frequencies.",
        """
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import Ridge
        from sklearn.pipeline import make_pipeline
        """,
        """
        model = make_pipeline(
            TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True), Ridge(alpha=0.5)
        )
        """,
    ),
    _cut(
        "cut-characters-ridge",
        "Character n-grams, ridge regression, cut to the frequencies.",
        """
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import Ridge
        from sklearn.pipeline import make_pipeline
        """,
        """
        model = make_pipeline(
            TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True, min_df=2),
            Ridge(alpha=0.5),
        )
        """,
    ),
    _cut(
        "cut-words-and-characters",
        "Words and characters side by side, ridge regression, cut to the frequencies.",
        """
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import Ridge
        from sklearn.pipeline import make_pipeline, make_union
        """,
        """
        features = make_union(
            TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True),
            TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True, min_df=2),
        )
        model = make_pipeline(features, Ridge(alpha=0.7))
        """,
    ),
    _cut(
        "cut-extra-trees",
        "TF-IDF, extremely randomised trees, cut to the frequencies.",
        """
        from sklearn.ensemble import ExtraTreesRegressor
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.pipeline import make_pipeline
        """,
        """
        model = make_pipeline(
            TfidfVectorizer(min_df=10, sublinear_tf=True),
            ExtraTreesRegressor(100, max_features=0.1, min_samples_leaf=2, random_state=0),
        )
        """,
    ),
    _cut(
        "cut-nearest-neighbours",
        "TF-IDF, mean grade of neighbours, cut to the frequencies.",
        """
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.neighbors import KNeighborsRegressor
        from sklearn.pipeline import make_pipeline
        """,
        """
        model = make_pipeline(
            TfidfVectorizer(sublinear_tf=True),
            KNeighborsRegressor(20, metric="cosine", weights="distance"),
        )
        """,
    ),
    _program(
        "style-ridge",
        "Counts of marks of style and lengths, ridge regression, cut.",
        """
        from sklearn.linear_model import Ridge
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        """,
        _CUT_FUNCTION,
        _COUNTS,
        """
        model = make_pipeline(StandardScaler(), Ridge(alpha=10))
        model.fit(describe(text), y)
        grade = cut(model.predict(describe(text_test)))
        """,
    ),
    _program(
        "style-boosting",
        "Counts of marks of style and lengths, gradient boosting, cut.",
        "from sklearn.ensemble import GradientBoostingRegressor",
        _CUT_FUNCTION,
        _COUNTS,
        """
        model = GradientBoostingRegressor(
            n_estimators=150, learning_rate=0.05, subsample=0.5, random_state=0
        )
        model.fit(describe(text), y)
        grade = cut(model.predict(describe(text_test)))
        """,
    ),
    _program(
        "style-random-forest",
        "Counts of marks of style and lengths, random forest, cut.",
        "from sklearn.ensemble import RandomForestRegressor",
        _CUT_FUNCTION,
        _COUNTS,
        """
        model = RandomForestRegressor(300, min_samples_leaf=5, max_features=0.4, random_state=0)
        model.fit(describe(text), y)
        grade = cut(model.predict(describe(text_test)))
        """,
    ),
    _program(
        "style-and-words-rounded",
        "Marks of style beside words, ridge regression, rounded.",
        """
        from scipy.sparse import hstack
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import Ridge
        from sklearn.preprocessing import StandardScaler
        """,
        _CUT_FUNCTION,
        _COUNTS,
        """
        words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
        scaler = StandardScaler().fit(describe(text))
        style, style_test = (0.3 * scaler.transform(describe(t)) for t in (text, text_test))
        X = hstack([words.fit_transform(text), style]).tocsr()
        X_test = hstack([words.transform(text_test), style_test]).tocsr()

        model = Ridge(alpha=1.0).fit(X, y)
        grade = np.clip(np.rint(model.predict(X_test)), 1, 5).astype(int)
        """,
    ),
    _program(
        "style-and-words",
        "Marks of style beside words and pairs of words, ridge regression, cut.",
        """
        from scipy.sparse import hstack
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import Ridge
        from sklearn.preprocessing import StandardScaler
        """,
        _CUT_FUNCTION,
        _COUNTS,
        """
        words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
        scaler = StandardScaler().fit(describe(text))
        style, style_test = (0.3 * scaler.transform(describe(t)) for t in (text, text_test))
        X = hstack([words.fit_transform(text), style]).tocsr()
        X_test = hstack([words.transform(text_test), style_test]).tocsr()

        model = Ridge(alpha=1.0).fit(X, y)
        grade = cut(model.predict(X_test))
        """,
    ),
    _program(
        "style-and-words-searched",
        "As before, with the penalty found by cross-validation.",
        """
        from scipy.sparse import hstack
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import Ridge
        from sklearn.model_selection import GridSearchCV
        from sklearn.preprocessing import StandardScaler
        """,
        _CUT_FUNCTION,
        _COUNTS,
        """
        words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
        scaler = StandardScaler().fit(describe(text))
        style, style_test = (0.3 * scaler.transform(describe(t)) for t in (text, text_test))
        X = hstack([words.fit_transform(text), style]).tocsr()
        X_test = hstack([words.transform(text_test), style_test]).tocsr()

        model = GridSearchCV(Ridge(), {"alpha": [0.3, 1, 3, 10]}, cv=5).fit(X, y)
        grade = cut(model.predict(X_test))
        """,
    ),
    _program(
        "style-words-and-characters",
        "Marks of style, words and characters, ridge regression, cut.",
        """
        from scipy.sparse import hstack
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import Ridge
        from sklearn.preprocessing import StandardScaler
        """,
        _CUT_FUNCTION,
        _COUNTS,
        """
        vectorizers = [
            TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True),
            TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True, min_df=2),
        ]
        scaler = StandardScaler().fit(describe(text))
        style, style_test = (0.3 * scaler.transform(describe(t)) for t in (text, text_test))
        X = hstack([*(v.fit_transform(text) for v in vectorizers), style]).tocsr()
        X_test = hstack([*(v.transform(text_test) for v in vectorizers), style_test]).tocsr()
        model = Ridge(alpha=1.5).fit(X, y)
        grade = cut(model.predict(X_test))
        """,
    ),
    _program(
        "style-and-words-extra-trees",
        "Marks of style beside frequent words, extremely randomised trees, cut.",
        """
        from scipy.sparse import hstack
        from sklearn.ensemble import ExtraTreesRegressor
        from sklearn.feature_extraction.text import TfidfVectorizer
        """,
        _CUT_FUNCTION,
        _COUNTS,
        """
        words = TfidfVectorizer(min_df=10, sublinear_tf=True)
        X = hstack([words.fit_transform(text), describe(text)]).tocsr()
        X_test = hstack([words.transform(text_test), describe(text_test)]).tocsr()
        model = ExtraTreesRegressor(100, max_features=0.2, min_samples_leaf=2, random_state=0)
        model.fit(X, y)
        grade = cut(model.predict(X_test))
        """,
    ),
    _program(
        "style-and-words-blend",
        "Average a ridge regression, trees and boosting, then cut.",
        """
        from scipy.sparse import hstack
        from sklearn.ensemble import ExtraTreesRegressor, GradientBoostingRegressor
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import Ridge
        from sklearn.preprocessing import StandardScaler
        """,
        _CUT_FUNCTION,
        _COUNTS,
        """
        words = TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True)
        scaler = StandardScaler().fit(describe(text))
        style, style_test = (0.3 * scaler.transform(describe(t)) for t in (text, text_test))
        X = hstack([words.fit_transform(text), style]).tocsr()
        X_test = hstack([words.transform(text_test), style_test]).tocsr()

        ridge = Ridge(alpha=1.0).fit(X, y).predict(X_test)

        frequent = TfidfVectorizer(min_df=10, sublinear_tf=True)
        Z = hstack([frequent.fit_transform(text), describe(text)]).tocsr()
        Z_test = hstack([frequent.transform(text_test), describe(text_test)]).tocsr()
        trees = ExtraTreesRegressor(100, max_features=0.15, min_samples_leaf=2, random_state=0)
        trees = trees.fit(Z, y).predict(Z_test)
        boosting = GradientBoostingRegressor(
            n_estimators=200,
            learning_rate=0.05,
            max_depth=4,
            subsample=0.5,
            max_features=0.05,
            random_state=0,
        )
        boosting = boosting.fit(Z, y).predict(Z_test)
        grade = cut(0.5 * ridge + 0.3 * trees + 0.2 * boosting)
        """,
    ),
)
