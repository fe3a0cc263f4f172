"""Which libraries, functions and methods stand for which stage.

Plain tables, used twice: the syntax-tree inserter looks here to find candidate places, and the
witnesses look here at run time to decide whether what was called really belongs to a library.
Top-level module names throughout; standard library only, since this is loaded in the sandbox.
"""


def words(text: str) -> frozenset[str]:
    """A set of names, written as a text."""
    return frozenset(text.split())


READER_LIBRARIES = words(
    "pandas polars numpy csv _csv json scipy pyarrow dask modin cudf datasets PIL cv2 skimage "
    "imageio torchvision torch tensorflow keras tf_keras h5py librosa soundfile"
)
MODEL_LIBRARIES = words(
    "sklearn xgboost lightgbm catboost torch keras tensorflow tf_keras transformers statsmodels "
    "imblearn sentence_transformers lightning pytorch_lightning fastai skorch timm torchvision "
    "peft accelerate trl cuml river tabpfn ngboost autogluon flaml"
)
METRIC_LIBRARIES = MODEL_LIBRARIES | {"scipy", "numpy", "torchmetrics", "evaluate"}
PACKAGES = READER_LIBRARIES - {"csv", "_csv", "json"} | METRIC_LIBRARIES
"""Third-party packages whose import counts as "packages imported"."""

READERS = words(
    "read_csv read_parquet read_json read_table read_excel read_feather read_hdf read_orc "
    "read_fwf read_ndjson scan_csv scan_parquet load loadtxt genfromtxt fromfile memmap loadmat "
    "open imread read_image reader DictReader load_dataset from_csv from_parquet ImageFolder "
    "image_dataset_from_directory"
)
PATH_KEYWORDS = (
    "data_files",
    "filepath_or_buffer",
    "path",
    "path_or_buf",
    "io",
    "file",
    "fname",
    "filename",
    "source",
    "root",
    "directory",
    "fp",
)
"""Keyword arguments of readers that name a file; otherwise the first argument does."""

FIT_METHODS = frozenset({"fit", "partial_fit", "fit_predict", "fit_one_cycle", "fine_tune"})
TRAIN_FUNCTIONS = frozenset({"train", "cv"})
"""Functions that train a model of a boosting library, and `Trainer.train`."""

CROSS_VALIDATION = frozenset({"cross_val_score", "cross_validate", "cross_val_predict"})
STEP_METHODS = frozenset({"step", "apply_gradients"})
PREDICT_METHODS = frozenset(
    {"predict", "predict_proba", "predict_log_proba", "decision_function", "predict_on_batch"}
)

MODEL_SUBMODULES = words(
    "linear_model ensemble svm tree naive_bayes neighbors neural_network gaussian_process "
    "discriminant_analysis kernel_ridge calibration multiclass multioutput semi_supervised "
    "cluster mixture isotonic dummy cross_decomposition pipeline"
)
"""Submodules of scikit-learn (and of libraries laid out like it) whose classes are models."""

FITTED_SCORES = frozenset({"best_score_", "best_score", "oob_score_", "validation_scores_"})
FITTED_LOSSES = frozenset(
    {"loss_", "best_loss_", "loss_curve_", "train_score_", "training_loss", "objective_value_"}
)
METRIC_SUFFIXES = ("_score", "_loss", "_error", "_deviance", "_auc")
METRICS = words(
    "accuracy_score roc_auc_score log_loss f1_score matthews_corrcoef cohen_kappa_score r2_score "
    "brier_score_loss pearsonr spearmanr kendalltau auc"
)
