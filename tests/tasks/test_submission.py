"""Each malformed submission has its own clear sentence and no score; each sound one is read."""

import contextlib
import gzip
import io
import pickle
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mle_rl.tasks import METRICS, grade
from mle_rl.tasks.submission import SubmissionError, read_predictions

IDS = ("q01", "q02", "q03", "q04")
CLASSES = ("cat", "dog")
SOUND = {
    "log_loss": "id,cat,dog\nq01,0.9,0.1\nq02,0.2,0.8\nq03,0.5,0.5\nq04,1,0\n",
    "accuracy": "id,target\nq01,cat\nq02,dog\nq03,cat\nq04,dog\n",
    "quadratic_weighted_kappa": "id,target\nq01,1\nq02,2\nq03,5\nq04,1\n",
    "rmsle": "id,target\nq01,0\nq02,2.5\nq03,1e2\nq04,.5\n",
    "pearson": "id,target\nq01,0\nq02,-2.5\nq03,1e2\nq04,+.5\n",
}
ANSWERS = {
    "log_loss": [
        ("q01", "1", "0", "reward"),
        ("q02", "0", "1", "reward"),
        ("q03", "1", "0", "final"),
        ("q04", "0", "1", "final"),
    ],
    "accuracy": [(k, c, s) for k, c, s in zip(IDS, ("cat", "dog") * 2, "rrff", strict=True)],
    "quadratic_weighted_kappa": [(k, g, s) for k, g, s in zip(IDS, "1525", "rrff", strict=True)],
    "rmsle": [(k, v, s) for k, v, s in zip(IDS, "0437", "rrff", strict=True)],
    "pearson": [(k, v, s) for k, v, s in zip(IDS, "0437", "rrff", strict=True)],
}
SPLITS = {"r": "reward", "f": "final"}


def _zip() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("submission.csv", SOUND["accuracy"])
    return buffer.getvalue()


# kind of fault: (metric, the file or a change to the sound one, what the sentence has to say)
FAULTS = {
    "no file": ("accuracy", None, "wrote no submission.csv"),
    "empty file": ("accuracy", b"", "0 bytes"),
    "white space": ("accuracy", b"\n  \n", "only white space"),
    "zip archive": ("accuracy", _zip(), "zip archive"),
    "gzip": ("accuracy", gzip.compress(b"id,target\n"), "gzip"),
    "parquet": ("accuracy", b"PAR1\x15\x04", "Parquet"),
    "numpy": ("accuracy", b"\x93NUMPY\x01\x00", "numpy array"),
    "pickle": ("accuracy", pickle.dumps([1]), "pickle"),
    "UTF-16": ("accuracy", SOUND["accuracy"].encode("utf-16"), "UTF-16"),
    "sqlite": ("accuracy", b"SQLite format 3\x00...", "SQLite"),
    "NUL bytes": ("accuracy", b"id,target\nq01,\x00\n", "NUL bytes"),
    "latin-1": ("accuracy", "id,target\nq01,Müsli\n".encode("latin-1"), "not UTF-8"),
    "header only": ("accuracy", b"id,target\n", "no rows"),
    "unclosed quote": ("accuracy", b'id,target\nq01,"cat\n', "not well-formed"),
    "no header": ("pearson", b"q01,1\nq02,2\nq03,3\nq04,4\n", "not a header"),
    "semicolons": ("pearson", SOUND["pearson"].replace(",", ";"), "semicolons"),
    "tabs": ("pearson", SOUND["pearson"].replace(",", "\t"), "tabs"),
    "no id column": ("accuracy", ("id,", "key,"), "Id column 'id' is missing"),
    "case of the id column": ("accuracy", ("id,", "ID,"), "differs in case"),
    "missing class column": ("log_loss", ("id,cat,dog", "id,cat,fish"), "Column 'dog' is missing"),
    "saved index": ("accuracy", ("id,target\nq01", ",id,target\n0,q01"), "fields"),
    "index column": (
        "accuracy",
        ",id,target\n0,q01,cat\n1,q02,dog\n2,q03,cat\n3,q04,dog\n",
        "index=False",
    ),
    "column too many": (
        "accuracy",
        "id,target,score\nq01,cat,1\nq02,dog,1\nq03,cat,1\nq04,dog,1\n",
        "does not belong",
    ),
    "column twice": ("accuracy", ("id,target", "target,target"), "more than once in the header"),
    "field missing": ("accuracy", ("q03,cat", "q03"), "has 1 fields"),
    "empty id": ("accuracy", ("q03,", ","), "empty id"),
    "id twice": ("accuracy", ("q03,", "q02,"), "'q02' appears more than once"),
    "id missing": ("accuracy", ("q03,cat\n", ""), "1 of 4 ids of test.csv are missing"),
    "unknown id": ("accuracy", ("q03,", "q99,"), "'q99' is not an id"),
    "spaces around an id": ("accuracy", ("q03,", "q03 ,"), "spaces around it"),
    "foreign ids": ("accuracy", b"id,target\n0,cat\n1,dog\n", "No id of the submission"),
    "empty prediction": ("pearson", ("-2.5", ""), "the prediction is empty"),
    "NaN": ("pearson", ("-2.5", "nan"), "missing (nan)"),
    "None": ("pearson", ("-2.5", "None"), "missing (None)"),
    "infinity": ("pearson", ("-2.5", "-inf"), "infinite"),
    "overflow": ("pearson", ("-2.5", "1e999"), "too large"),
    "text for a number": ("pearson", ("-2.5", "high"), "'high' is not a number"),
    "truth value": ("pearson", ("-2.5", "True"), "truth value"),
    "list": ("pearson", ("-2.5", "[0.5]"), "is a list"),
    "percentage": ("pearson", ("-2.5", "25%"), "percentage"),
    "decimal comma": ("pearson", ("-2.5", '"2,5"'), "comma inside"),
    "underscore": ("pearson", ("-2.5", "1_000"), "'1_000' is not a number"),
    "spaces around a number": ("pearson", ("-2.5", " 2.5"), "spaces around the number"),
    "constant for a correlation": (
        "pearson",
        "id,target\nq01,1\nq02,1.0\nq03,2\nq04,3\n",
        "is undefined",
    ),
    "negative probability": ("log_loss", ("0.9,0.1", "1.1,-0.1"), "above 1"),
    "probability below zero": ("log_loss", ("0.9,0.1", "-0.1,1"), "-0.1 is negative"),
    "probabilities all zero": ("log_loss", ("0.9,0.1", "0,0"), "all probabilities are zero"),
    "probabilities sum to 2": ("log_loss", ("0.9,0.1", "1,1"), "sum to 2.0000"),
    "unknown label": ("accuracy", ("q03,cat", "q03,fish"), "'fish' is not a label"),
    "empty label": ("accuracy", ("q03,cat", "q03,"), "empty label"),
    "NaN label": ("accuracy", ("q03,cat", "q03,nan"), "the label is NaN"),
    "label with spaces": ("accuracy", ("q03,cat", "q03, cat"), "spaces around it"),
    "fraction for a rating": (
        "quadratic_weighted_kappa",
        ("q02,2", "q02,2.5"),
        "not a whole rating",
    ),
    "rating out of range": ("quadratic_weighted_kappa", ("q02,2", "q02,6"), "outside 1 to 5"),
    "negative count": ("rmsle", ("2.5", "-0.5"), "negative, which a logarithmic error"),
}


def _bytes(metric: str, fault) -> bytes | None:
    if isinstance(fault, tuple):
        old, new = fault
        assert SOUND[metric].count(old) == 1
        fault = SOUND[metric].replace(old, new)
    return fault.encode() if isinstance(fault, str) else fault


def _task(make_task, metric: str):
    columns = ("id", *CLASSES, "split") if metric == "log_loss" else ("id", "target", "split")
    rows = [(*row[:-1], SPLITS.get(row[-1], row[-1])) for row in ANSWERS[metric]]
    return make_task(metric, rows, columns)


@pytest.mark.parametrize("metric", SOUND)
def test_sound_submissions_are_graded(make_task, metric):
    grade_of_sound = grade(_task(make_task, metric), SOUND[metric].encode())
    assert grade_of_sound.problem is None
    assert grade_of_sound.valid


@pytest.mark.parametrize("kind", FAULTS)
def test_each_fault_has_its_sentence_and_no_score(make_task, kind):
    metric, fault, expected = FAULTS[kind]
    result = grade(_task(make_task, metric), _bytes(metric, fault))
    assert not result.valid
    assert result.reward_score is None
    assert result.final_score is None
    assert expected in result.problem
    assert result.problem.endswith(".")
    assert "\n" not in result.problem
    assert len(result.problem) < 250


def test_sentences_differ(make_task):
    tasks = {metric: _task_named(make_task, metric) for metric in SOUND}
    sentences = [grade(tasks[m], _bytes(m, fault)).problem for m, fault, _ in FAULTS.values()]
    assert len(set(sentences)) == len(sentences)
    assert len(sentences) >= 25


def _task_named(make_task, metric):
    return _task(lambda *a, **k: make_task(*a, **k, name=metric), metric)


@pytest.mark.parametrize(
    "change",
    [
        lambda text: "\ufeff" + text,  # byte order mark
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text + "\n\n",  # empty lines at the end
        lambda text: text.rstrip("\n"),
        lambda text: text.replace("q01", '"q01"'),
        lambda text: "\n".join([text.splitlines()[0], *sorted(text.splitlines()[1:])[::-1]]),
        lambda text: "\n".join(",".join(line.split(",")[::-1]) for line in text.splitlines()),
    ],
)
@pytest.mark.parametrize("metric", SOUND)
def test_other_spellings_of_the_same_submission(make_task, metric, change):
    task = _task(make_task, metric)
    text = SOUND[metric]
    assert grade(task, change(text).encode()) == grade(task, text.encode())


def test_rounded_probabilities_are_accepted():
    raw = b"id,a,b,c\nq,0.3333,0.3333,0.3333\n"
    row = read_predictions(raw, ("id", "a", "b", "c"), ("q",), METRICS["log_loss"])
    np.testing.assert_allclose(row, [[0.3333] * 3])


def test_whole_ratings_may_be_written_as_fractions():
    raw = b"id,target\nq,3.0\n"
    classes = ("1", "5")
    ratings = read_predictions(
        raw, ("id", "target"), ("q",), METRICS["quadratic_weighted_kappa"], classes
    )
    assert ratings.tolist() == [3.0]


@pytest.mark.parametrize("key", ["001", "1e5", "NA", "null", "1.0", "true", "0x1F", "a,b", ' "q" '])
def test_ids_survive_as_text(key):
    quoted = '"' + key.replace('"', '""') + '"'
    raw = f"id,target\n{quoted},2\nother,3\n".encode()
    values = read_predictions(raw, ("id", "target"), ("other", key), METRICS["pearson"])
    assert values.tolist() == [3.0, 2.0]


@pytest.mark.parametrize(("key", "changed"), [("001", "1"), ("1e5", "100000.0"), ("7", "7.0")])
def test_ids_that_a_reader_turned_into_numbers_are_recognised(key, changed):
    raw = f"id,target\n{changed},2\nx,1\n".encode()
    with pytest.raises(SubmissionError, match=f"read ids as text, '{key}'"):
        read_predictions(raw, ("id", "target"), (key, "x"), METRICS["pearson"])


@pytest.mark.parametrize("text", ["NA", "null", "nan", "", "007", "two words, one comma"])
def test_texts_survive(text):
    raw = f'id,target\nq,"{text}"\n'.encode()
    values = read_predictions(raw, ("id", "target"), ("q",), METRICS["word_jaccard"])
    assert values.tolist() == [text]


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda t: ("id,target\n" + t).encode()))
def test_no_bytes_raise_anything_else(raw):
    for metric in ("accuracy", "pearson", "quadratic_weighted_kappa", "word_jaccard"):
        with contextlib.suppress(SubmissionError):
            values = read_predictions(raw, ("id", "target"), ("q",), METRICS[metric], ("1", "2"))
            assert values.shape == (1,)
