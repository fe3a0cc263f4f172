"""Read a submission as text and check it; every fault has its own sentence.

Nothing here knows the answers. Cells stay text until the metric says what they are, so ids such as
``001``, ``1e5`` or ``NA`` survive, and rows are matched by id, never by position.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence

import numpy as np

from mle_rl.tasks.metrics import Metric

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_SUM_TOLERANCE = 1e-3
"""How far the probabilities of a row may sum from one: enough for columns printed with 4 digits."""

_BINARY_FORMATS = (
    (b"PK\x03\x04", "a zip archive"),
    (b"\x1f\x8b", "a gzip file"),
    (b"PAR1", "a Parquet file"),
    (b"\x93NUMPY", "a numpy array file"),
    (b"\x80\x04", "a pickle"),
    (b"\x80\x05", "a pickle"),
    (b"\xff\xfe", "UTF-16 text"),
    (b"\xfe\xff", "UTF-16 text"),
    (b"SQLite format 3\x00", "an SQLite database"),
)


class SubmissionError(ValueError):
    """The submission cannot be scored; the message is one sentence for the person who wrote it."""


def read_predictions(
    raw: bytes,
    columns: Sequence[str],
    ids: Sequence[str],
    metric: Metric,
    classes: Sequence[str] = (),
    ignored: Sequence[str] = (),
) -> np.ndarray:
    """Predictions of a submission, checked and in the order of ``ids``.

    Args:
        raw: Bytes of ``submission.csv``.
        columns: Required columns; the first one is the id. Any order in the file is accepted.
        ids: Ids of the test rows.
        metric: Decides what the prediction columns may contain.
        classes: Permitted labels or ratings, for metrics on labels and on integers.
        ignored: Columns that may be there and are not read.

    Returns:
        Shape ``(N, K)`` for metrics on many columns, else ``(N,)``; float64, or text for labels.

    Raises:
        SubmissionError: With one sentence on what is wrong.
    """
    header, rows = _parse(_decode(raw))
    _check_header(header, columns, ignored)
    by_id = _rows_by_id(header, rows, columns[0])
    _check_ids(by_id, ids)
    position = [header.index(name) for name in columns[1:]]
    cells = [[by_id[key][k] for k in position] for key in ids]
    table = np.array(_convert(cells, ids, columns[1:], metric, classes))
    return table if metric.many_columns else table[:, 0]


def _decode(raw: bytes) -> str:
    if not raw:
        raise SubmissionError("submission.csv is empty (0 bytes).")
    for magic, name in _BINARY_FORMATS:
        if raw.startswith(magic):
            raise SubmissionError(f"submission.csv is {name}, not plain UTF-8 CSV text.")
    if b"\x00" in raw:
        raise SubmissionError("submission.csv contains NUL bytes, so it is not CSV text.")
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise SubmissionError(
            f"submission.csv is not UTF-8 text: byte {error.start} cannot be decoded."
        ) from None
    if not text.strip():
        raise SubmissionError("submission.csv contains only white space.")
    return text


def _parse(text: str) -> tuple[list[str], list[list[str]]]:
    try:
        lines = [row for row in csv.reader(io.StringIO(text, newline=""), strict=True) if row]
    except csv.Error as error:
        raise SubmissionError(f"submission.csv is not well-formed CSV: {error}.") from None
    header, rows = lines[0], lines[1:]
    for number, row in enumerate(rows, start=2):
        if len(row) != len(header):
            raise SubmissionError(
                f"Record {number} of submission.csv has {len(row)} fields, "
                f"but the header has {len(header)}."
            )
    if not rows:
        raise SubmissionError("submission.csv has a header but no rows.")
    return header, rows


def _check_header(header: list[str], columns: Sequence[str], ignored: Sequence[str]) -> None:
    expected = ", ".join(columns)
    repeated = sorted({name for name in header if header.count(name) > 1})
    if repeated:
        raise SubmissionError(f"Column {repeated[0]!r} appears more than once in the header.")
    missing = [name for name in columns if name not in header]
    if missing:
        raise SubmissionError(_missing_column(header, missing, columns, expected))
    extra = [name for name in header if name not in columns and name not in ignored]
    if "" in extra or "Unnamed: 0" in extra:
        raise SubmissionError(
            "submission.csv has a column without a name, as an index saved by pandas; "
            "write it with index=False."
        )
    if extra:
        raise SubmissionError(
            f"Column {_show(extra[0])} does not belong in the submission; expected {expected}."
        )


def _missing_column(header, missing, columns, expected) -> str:
    name = missing[0]
    if len(header) == 1 and len(columns) > 1:
        for delimiter, spoken in ((";", "semicolons"), ("\t", "tabs"), ("|", "vertical bars")):
            if delimiter in header[0]:
                return f"Fields are separated by {spoken}; submission.csv needs commas."
    if all(_NUMBER.fullmatch(field.strip()) for field in header[1:]) and len(header) > 1:
        return f"The first line is data, not a header; it must be {expected}."
    for present in header:
        if present != name and present.strip().lower() == name.strip().lower():
            return f"Column {name!r} is missing; {present!r} differs in case or in spaces."
    what = "Id column" if name == columns[0] else "Column"
    return f"{what} {name!r} is missing; the header must be {expected}."


def _rows_by_id(header: list[str], rows: list[list[str]], id_column: str) -> dict[str, list[str]]:
    position = header.index(id_column)
    by_id: dict[str, list[str]] = {}
    for number, row in enumerate(rows, start=2):
        key = row[position]
        if not key.strip():
            raise SubmissionError(f"Record {number} of submission.csv has an empty id.")
        if key in by_id:
            raise SubmissionError(f"Id {_show(key)} appears more than once.")
        by_id[key] = row
    return by_id


def _check_ids(by_id: dict[str, list[str]], ids: Sequence[str]) -> None:
    wanted = set(ids)
    unknown = [key for key in by_id if key not in wanted]
    missing = [key for key in ids if key not in by_id]
    if unknown and len(unknown) == len(by_id):
        hint = _rewritten(unknown[0], wanted)
        raise SubmissionError(
            f"No id of the submission is an id of test.csv (for example {_show(unknown[0])}){hint}."
        )
    if unknown:
        hint = _rewritten(unknown[0], wanted)
        raise SubmissionError(f"Id {_show(unknown[0])} is not an id of test.csv{hint}.")
    if missing:
        raise SubmissionError(
            f"{len(missing)} of {len(ids)} ids of test.csv are missing, first {_show(missing[0])}."
        )


def _rewritten(key: str, wanted: set[str]) -> str:
    """A hint when a CSV reader has turned a text id such as 007 into a number."""
    if key.strip() in wanted:
        return "; it has spaces around it"
    if not _NUMBER.fullmatch(key.strip()):
        return ""
    same = [w for w in wanted if _NUMBER.fullmatch(w) and float(w) == float(key)]
    return f"; read ids as text, {_show(same[0])} was changed into a number" if same else ""


def _convert(cells, ids, names, metric: Metric, classes: Sequence[str]) -> list[list]:
    if metric.prediction == "text":
        return cells
    if metric.prediction == "label":
        return [[_label(c, key, classes) for c in row] for key, row in zip(ids, cells, strict=True)]
    values = [
        [_number(cell, key, name) for cell, name in zip(row, names, strict=True)]
        for key, row in zip(ids, cells, strict=True)
    ]
    check = {
        "distribution": _check_distribution,
        "nonnegative": _check_nonnegative,
        "integer": _check_integer,
        "real": lambda *_: None,
    }[metric.prediction]
    for key, row in zip(ids, values, strict=True):
        check(row, key, names, classes)
    return values


def _label(cell: str, key: str, classes: Sequence[str]) -> str:
    if cell in classes:
        return cell
    if not cell.strip():
        raise SubmissionError(f"Id {_show(key)} has an empty label.")
    if cell.strip() in classes:
        raise SubmissionError(f"Id {_show(key)}: the label {_show(cell)} has spaces around it.")
    if cell.lower() == "nan":
        raise SubmissionError(f"Id {_show(key)}: the label is NaN.")
    raise SubmissionError(
        f"Id {_show(key)}: {_show(cell)} is not a label of train.csv; "
        f"labels look like {_show(classes[0])}."
    )


def _number(cell: str, key: str, name: str) -> float:
    if _NUMBER.fullmatch(cell):
        value = float(cell)
        if abs(value) == float("inf"):
            raise SubmissionError(
                f"Id {_show(key)}, column {name!r}: {_show(cell)} is too large for a number."
            )
        return value
    raise SubmissionError(f"Id {_show(key)}, column {name!r}: {_not_a_number(cell)}.")


def _not_a_number(cell: str) -> str:
    text = cell.strip()
    if not text:
        return "the prediction is empty"
    if _NUMBER.fullmatch(text):
        return f"{_show(cell)} has spaces around the number"
    if text.lower().lstrip("+-") in ("nan", "na", "n/a", "null", "none", "<na>"):
        return f"the prediction is missing ({text})"
    if text.lower().lstrip("+-") in ("inf", "infinity"):
        return "the prediction is infinite"
    if text.lower() in ("true", "false"):
        return f"{text} is a truth value, not a number"
    if text[0] in "[(":
        return f"{_show(cell)} is a list, not one number"
    if text.endswith("%"):
        return f"{_show(cell)} is a percentage; write it as a number"
    if re.fullmatch(r"[+-]?\d+(,\d+)+(\.\d+)?", text):
        return f"{_show(cell)} has a comma inside the number"
    return f"{_show(cell)} is not a number"


def _check_distribution(row: list[float], key: str, names, classes) -> None:
    for value, name in zip(row, names, strict=True):
        if value < 0:
            raise SubmissionError(
                f"Id {_show(key)}, column {name!r}: probability {value:g} is negative."
            )
        if value > 1:
            raise SubmissionError(
                f"Id {_show(key)}, column {name!r}: probability {value:g} is above 1."
            )
    total = sum(row)
    if total == 0:
        raise SubmissionError(f"Id {_show(key)}: all probabilities are zero.")
    if abs(total - 1) > _SUM_TOLERANCE:
        raise SubmissionError(f"Id {_show(key)}: probabilities sum to {total:.4f}, not to 1.")


def _check_nonnegative(row: list[float], key: str, names, classes) -> None:
    for value, name in zip(row, names, strict=True):
        if value < 0:
            raise SubmissionError(
                f"Id {_show(key)}, column {name!r}: {value:g} is negative, "
                "which a logarithmic error does not allow."
            )


def _check_integer(row: list[float], key: str, names, classes) -> None:
    low, high = min(map(int, classes)), max(map(int, classes))
    for value, name in zip(row, names, strict=True):
        if value != int(value):
            raise SubmissionError(
                f"Id {_show(key)}, column {name!r}: {value:g} is not a whole rating; round it."
            )
        if not low <= value <= high:
            raise SubmissionError(
                f"Id {_show(key)}, column {name!r}: rating {value:g} is outside {low} to {high}."
            )


def _show(text: str) -> str:
    """A cell in quotes, shortened, so that one bad file cannot flood a message."""
    return repr(text if len(text) <= 40 else text[:37] + "...")
