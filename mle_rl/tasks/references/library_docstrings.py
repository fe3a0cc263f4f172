"""Reference programs for ``library-docstrings``."""

from mle_rl.tasks.references.reference import Reference, reference

_LOAD = """\
train = pd.read_csv("input/train.csv")
test = pd.read_csv("input/test.csv")
"""

_WRITE = """\
submission = pd.DataFrame(probabilities, columns=classes)
submission.insert(0, "id", test["id"])
submission.to_csv("submission.csv", index=False)
"""

_FIT = """\
model.fit(train["text"], train["library"])
probabilities = model.predict_proba(test["text"])
classes = model.classes_
"""


def _program(name: str, plan: str, imports: str, body: str) -> Reference:
    return reference(name, plan, imports, _LOAD, body, _WRITE)


def _model(name: str, plan: str, imports: str, model: str) -> Reference:
    return reference(name, plan, imports, _LOAD, model, _FIT, _WRITE)


REFERENCES = (
    _model(
        "class-frequencies",
        "Predict the frequency of each library.",
        """
        import pandas as pd
        from sklearn.dummy import DummyClassifier
        """,
        'model = DummyClassifier(strategy="prior")',
    ),
    _program(
        "text-length",
        "Logistic regression on a few lengths and counts of characters.",
        """
        import pandas as pd
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        """,
        """
        def describe(text):
            return pd.DataFrame(
                {
                    "length": text.str.len(),
                    "words": text.str.split().str.len(),
                    "backticks": text.str.count("`"),
                    "colons": text.str.count(":"),
                    "quotes": text.str.count("'"),
                    "digits": text.str.count(r"\\d"),
                    "capitals": text.str.count("[A-Z]"),
                    "masked": text.str.count("LIB"),
                }
            )


        model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        model.fit(describe(train["text"]), train["library"])
        probabilities = model.predict_proba(describe(test["text"]))
        classes = model.classes_
        """,
    ),
    _model(
        "counts-naive-bayes",
        "Count words and fit naive Bayes.",
        """
        import pandas as pd
        from sklearn.feature_extraction.text import CountVectorizer
        from sklearn.naive_bayes import MultinomialNB
        from sklearn.pipeline import make_pipeline
        """,
        "model = make_pipeline(CountVectorizer(), MultinomialNB())",
    ),
    _model(
        "presence-bernoulli-bayes",
        "Which words occur, without counting them, and Bernoulli naive Bayes.",
        """
        import pandas as pd
        from sklearn.feature_extraction.text import CountVectorizer
        from sklearn.naive_bayes import BernoulliNB
        from sklearn.pipeline import make_pipeline
        """,
        "model = make_pipeline(CountVectorizer(binary=True, min_df=2), BernoulliNB(alpha=0.1))",
    ),
    _model(
        "tfidf-naive-bayes",
        "TF-IDF and naive Bayes with default settings.",
        """
        import pandas as pd
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.naive_bayes import MultinomialNB
        from sklearn.pipeline import make_pipeline
        """,
        "model = make_pipeline(TfidfVectorizer(), MultinomialNB())",
    ),
    _model(
        "tfidf-naive-bayes-less-smoothing",
        "TF-IDF and naive Bayes with little smoothing.",
        """
        import pandas as pd
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.naive_bayes import MultinomialNB
        from sklearn.pipeline import make_pipeline
        """,
        "model = make_pipeline(TfidfVectorizer(sublinear_tf=True), MultinomialNB(alpha=0.1))",
    ),
    _model(
        "tfidf-complement-bayes",
        "TF-IDF and complement naive Bayes.",
        """
        import pandas as pd
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.naive_bayes import ComplementNB
        from sklearn.pipeline import make_pipeline
        """,
        "model = make_pipeline(TfidfVectorizer(), ComplementNB(alpha=0.3))",
    ),
    _model(
        "tfidf-nearest-neighbours",
        "Fifteen nearest neighbours by cosine distance of TF-IDF vectors.",
        """
        import pandas as pd
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.neighbors import KNeighborsClassifier
        from sklearn.pipeline import make_pipeline
        """,
        """
        model = make_pipeline(
            TfidfVectorizer(stop_words="english"),
            KNeighborsClassifier(15, metric="cosine", weights="distance"),
        )
        """,
    ),
    _model(
        "tfidf-decision-tree",
        "A decision tree on TF-IDF features, with leaves of ten texts or more.",
        """
        import pandas as pd
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.pipeline import make_pipeline
        from sklearn.tree import DecisionTreeClassifier
        """,
        """
        model = make_pipeline(
            TfidfVectorizer(max_features=2000),
            DecisionTreeClassifier(min_samples_leaf=10, random_state=0),
        )
        """,
    ),
    _model(
        "tfidf-random-forest",
        "TF-IDF and a random forest with default settings.",
        """
        import pandas as pd
        from sklearn.ensemble import RandomForestClassifier
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.pipeline import make_pipeline
        """,
        "model = make_pipeline(TfidfVectorizer(), RandomForestClassifier(random_state=0))",
    ),
    _model(
        "tfidf-extra-trees",
        "TF-IDF of words seen twice or more and 300 extremely randomised trees.",
        """
        import pandas as pd
        from sklearn.ensemble import ExtraTreesClassifier
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.pipeline import make_pipeline
        """,
        """
        model = make_pipeline(
            TfidfVectorizer(min_df=2, sublinear_tf=True),
            ExtraTreesClassifier(300, random_state=0),
        )
        """,
    ),
    _model(
        "tfidf-logistic",
        "TF-IDF and logistic regression with default settings.",
        """
        import pandas as pd
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        """,
        "model = make_pipeline(TfidfVectorizer(), LogisticRegression(max_iter=1000))",
    ),
    _model(
        "tfidf-logistic-stop-words",
        "TF-IDF without English stop words and logistic regression.",
        """
        import pandas as pd
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        """,
        """
        model = make_pipeline(
            TfidfVectorizer(stop_words="english", max_features=5000),
            LogisticRegression(C=10, max_iter=1000),
        )
        """,
    ),
    _model(
        "counts-logistic",
        "Count words and fit logistic regression.",
        """
        import pandas as pd
        from sklearn.feature_extraction.text import CountVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        """,
        "model = make_pipeline(CountVectorizer(), LogisticRegression(max_iter=1000))",
    ),
    _model(
        "bigrams-logistic",
        "Sublinear TF-IDF of words and pairs of words, weakly regularised logistic regression.",
        """
        import pandas as pd
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        """,
        """
        model = make_pipeline(
            TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True),
            LogisticRegression(C=10, max_iter=1000),
        )
        """,
    ),
    _model(
        "tfidf-sgd",
        "TF-IDF and a linear model trained by stochastic gradient descent on the log loss.",
        """
        import pandas as pd
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import SGDClassifier
        from sklearn.pipeline import make_pipeline
        """,
        """
        model = make_pipeline(
            TfidfVectorizer(sublinear_tf=True),
            SGDClassifier(loss="log_loss", alpha=1e-4, random_state=0),
        )
        """,
    ),
    _model(
        "svd-logistic",
        "One hundred latent dimensions of TF-IDF and logistic regression.",
        """
        import pandas as pd
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        """,
        """
        model = make_pipeline(
            TfidfVectorizer(sublinear_tf=True),
            TruncatedSVD(100, random_state=0),
            StandardScaler(),
            LogisticRegression(max_iter=1000, C=0.1),
        )
        """,
    ),
    _model(
        "svd-boosting",
        "Fifty latent dimensions of TF-IDF and histogram gradient boosting.",
        """
        import pandas as pd
        from sklearn.decomposition import TruncatedSVD
        from sklearn.ensemble import HistGradientBoostingClassifier
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.pipeline import make_pipeline
        """,
        """
        model = make_pipeline(
            TfidfVectorizer(sublinear_tf=True),
            TruncatedSVD(50, random_state=0),
            HistGradientBoostingClassifier(max_iter=60, learning_rate=0.08, random_state=0),
        )
        """,
    ),
    _model(
        "svd-mlp",
        "A small neural network on two hundred latent dimensions.",
        """
        import pandas as pd
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.neural_network import MLPClassifier
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        """,
        """
        model = make_pipeline(
            TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), sublinear_tf=True, min_df=3),
            TruncatedSVD(200, random_state=0),
            StandardScaler(),
            MLPClassifier((64,), alpha=3.0, early_stopping=True, random_state=0),
        )
        """,
    ),
    _model(
        "trigrams-naive-bayes",
        "Character trigrams within words and naive Bayes.",
        """
        import pandas as pd
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.naive_bayes import MultinomialNB
        from sklearn.pipeline import make_pipeline
        """,
        """
        model = make_pipeline(
            TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 3)), MultinomialNB(alpha=0.1)
        )
        """,
    ),
    _model(
        "characters-naive-bayes",
        "Character n-grams of two to five and naive Bayes with hardly any smoothing.",
        """
        import pandas as pd
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.naive_bayes import MultinomialNB
        from sklearn.pipeline import make_pipeline
        """,
        """
        model = make_pipeline(
            TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True),
            MultinomialNB(alpha=0.02),
        )
        """,
    ),
    _model(
        "characters-logistic-default",
        "Character n-grams of two to four and logistic regression with the default penalty.",
        """
        import pandas as pd
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        """,
        """
        model = make_pipeline(
            TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4)),
            LogisticRegression(max_iter=1000),
        )
        """,
    ),
    _model(
        "characters-logistic",
        "Sublinear character n-grams of two to five and weakly regularised logistic regression.",
        """
        import pandas as pd
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        """,
        """
        model = make_pipeline(
            TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True),
            LogisticRegression(C=30, max_iter=1000),
        )
        """,
    ),
    _model(
        "characters-over-words",
        "Character n-grams across word boundaries, kept in their case, and logistic regression.",
        """
        import pandas as pd
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline
        """,
        """
        model = make_pipeline(
            TfidfVectorizer(
                analyzer="char", ngram_range=(1, 5), sublinear_tf=True, min_df=2, lowercase=False
            ),
            LogisticRegression(C=30, max_iter=1000),
        )
        """,
    ),
    _model(
        "words-and-characters",
        "Word pairs and character n-grams side by side, logistic regression.",
        """
        import pandas as pd
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.pipeline import make_pipeline, make_union
        """,
        """
        features = make_union(
            TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True),
            TfidfVectorizer(analyzer="char", ngram_range=(3, 5), sublinear_tf=True, min_df=2),
        )
        model = make_pipeline(features, LogisticRegression(C=20, max_iter=300))
        """,
    ),
    _model(
        "calibrated-svm",
        "A linear support vector machine on words and characters, calibrated by cross-validation.",
        """
        import pandas as pd
        from sklearn.calibration import CalibratedClassifierCV
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.pipeline import make_pipeline, make_union
        from sklearn.svm import LinearSVC
        """,
        """
        features = make_union(
            TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True),
            TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True),
        )
        model = make_pipeline(features, CalibratedClassifierCV(LinearSVC(C=0.5), cv=5))
        """,
    ),
    _model(
        "calibrated-complement-bayes",
        "Complement naive Bayes on character n-grams, calibrated by cross-validation.",
        """
        import pandas as pd
        from sklearn.calibration import CalibratedClassifierCV
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.naive_bayes import ComplementNB
        from sklearn.pipeline import make_pipeline
        """,
        """
        model = make_pipeline(
            TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True),
            CalibratedClassifierCV(ComplementNB(alpha=0.05), cv=5),
        )
        """,
    ),
    _model(
        "voting",
        "Average the probabilities of three different models of characters.",
        """
        import pandas as pd
        from sklearn.calibration import CalibratedClassifierCV
        from sklearn.ensemble import VotingClassifier
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.naive_bayes import MultinomialNB
        from sklearn.pipeline import make_pipeline
        from sklearn.svm import LinearSVC
        """,
        """
        vote = VotingClassifier(
            [
                ("logistic", LogisticRegression(C=30, max_iter=1000)),
                ("bayes", MultinomialNB(alpha=0.02)),
                ("svm", CalibratedClassifierCV(LinearSVC(C=0.5), cv=5)),
            ],
            voting="soft",
        )
        model = make_pipeline(
            TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True), vote
        )
        """,
    ),
    _model(
        "searched-characters-logistic",
        "Search the penalty of a model of character n-grams by cross-validation.",
        """
        import pandas as pd
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.model_selection import GridSearchCV
        from sklearn.pipeline import make_pipeline
        """,
        """
        model = make_pipeline(
            TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 4), sublinear_tf=True, min_df=2),
            GridSearchCV(
                LogisticRegression(max_iter=300), {"C": [3, 10, 30]}, scoring="neg_log_loss", cv=3
            ),
        )
        """,
    ),
    _model(
        "stacking",
        "Stack a linear SVM and two kinds of naive Bayes under logistic regression.",
        """
        import pandas as pd
        from sklearn.ensemble import StackingClassifier
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.naive_bayes import ComplementNB, MultinomialNB
        from sklearn.pipeline import make_pipeline, make_union
        from sklearn.svm import LinearSVC
        """,
        """
        features = make_union(
            TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True),
            TfidfVectorizer(analyzer="char_wb", ngram_range=(3, 5), sublinear_tf=True),
        )
        stack = StackingClassifier(
            [
                ("svm", LinearSVC(C=0.5)),
                ("bayes", MultinomialNB(alpha=0.02)),
                ("complement", ComplementNB(alpha=0.05)),
            ],
            LogisticRegression(C=0.3, max_iter=1000),
            cv=5,
        )
        model = make_pipeline(features, stack)
        """,
    ),
    _program(
        "calibrated-bayes-and-svm",
        "Multiply the calibrated probabilities of complement naive Bayes and a linear SVM.",
        """
        import numpy as np
        import pandas as pd
        from sklearn.calibration import CalibratedClassifierCV
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.naive_bayes import ComplementNB
        from sklearn.pipeline import make_union
        from sklearn.svm import LinearSVC
        """,
        """
        features = make_union(
            TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True),
            TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True),
        )
        x = features.fit_transform(train["text"])
        x_test = features.transform(test["text"])
        logits = 0
        for weight, base in [(0.7, ComplementNB(alpha=0.05)), (0.45, LinearSVC(C=0.5))]:
            model = CalibratedClassifierCV(base, cv=10)
            model.fit(x, train["library"])
            logits = logits + weight * np.log(model.predict_proba(x_test) + 1e-6)
        probabilities = np.exp(logits)
        probabilities /= probabilities.sum(axis=1, keepdims=True)
        classes = model.classes_
        """,
    ),
    _program(
        "tempered-blend",
        "Blend five models in the logarithm of their probabilities; weights set by hand.",
        """
        import numpy as np
        import pandas as pd
        from sklearn.calibration import CalibratedClassifierCV
        from sklearn.ensemble import ExtraTreesClassifier
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression
        from sklearn.naive_bayes import ComplementNB
        from sklearn.svm import LinearSVC
        """,
        """
        vectorizers = {
            "words": TfidfVectorizer(ngram_range=(1, 2), sublinear_tf=True, min_df=2),
            "inside": TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), sublinear_tf=True),
            "across": TfidfVectorizer(
                analyzer="char", ngram_range=(3, 5), sublinear_tf=True, min_df=2, lowercase=False
            ),
        }
        x = {name: v.fit_transform(train["text"]) for name, v in vectorizers.items()}
        x_test = {name: v.transform(test["text"]) for name, v in vectorizers.items()}
        models = [
            ("inside", 0.35, CalibratedClassifierCV(ComplementNB(alpha=0.05), cv=10)),
            ("across", 0.30, CalibratedClassifierCV(ComplementNB(alpha=0.05), cv=10)),
            ("across", 0.30, CalibratedClassifierCV(LinearSVC(C=0.5), cv=5)),
            ("across", 0.10, LogisticRegression(C=30, max_iter=200)),
            ("words", 0.20, ExtraTreesClassifier(100, min_samples_leaf=2, random_state=0)),
        ]
        logits = 0
        for name, weight, model in models:
            model.fit(x[name], train["library"])
            logits = logits + weight * np.log(model.predict_proba(x_test[name]) + 1e-6)
        probabilities = np.exp(logits)
        probabilities /= probabilities.sum(axis=1, keepdims=True)
        classes = model.classes_
        """,
    ),
)
