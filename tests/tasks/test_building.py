"""A built competition is the same everywhere, keeps its secrets, and appears whole or not."""

import csv
import io
import json
import subprocess
import sys
import textwrap
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mle_rl import MleRlError
from mle_rl.tasks import building
from mle_rl.tasks.building import Competition, Example, build, distinct, divide, prepare
from mle_rl.tasks.task import fingerprint, hash_files

PAGE = "# Toy\n\n{n_train} and {n_test} rows, classes {classes}.\n"


def examples(groups=12, per_group=5, strata=("x", "y")):
    return [
        Example((f"{s}{g}-{k}", "001"), target=s, group=f"{s}{g}", stratum=s)
        for s in strata
        for g in range(groups)
        for k in range(per_group)
    ]


def competition(found=None, **changes):
    settings = {
        "id": "toy",
        "title": "Toy",
        "kind": "text",
        "metric": "accuracy",
        "target": "label",
        "features": ("text", "code"),
        "id_prefix": "r",
        "train_rows": 20,
        "test_rows": 20,
        "sample_predictions": ("x",),
        "sources": ("numpy",),
        "examples": lambda: examples() if found is None else list(found),
        "page": PAGE,
    }
    return Competition(**settings | changes)


def rows(files, name):
    return list(csv.DictReader(io.StringIO(files[name].decode())))


def test_the_same_examples_in_any_order_give_the_same_bytes():
    forwards = prepare(competition(train_rows=18))  # a group is cut: which of its rows stay?
    backwards = prepare(competition(examples()[::-1], train_rows=18))
    assert forwards == backwards


def test_the_hash_seed_of_the_process_does_not_matter(tmp_path):
    program = textwrap.dedent("""
        from mle_rl.tasks.building import prepare
        from mle_rl.tasks.suite import COMPETITIONS
        from mle_rl.tasks.task import hash_files
        print(hash_files(sorted(prepare(COMPETITIONS["terrain-height"]).items())))
    """)
    hashes = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PATH": "/usr/bin:/bin"},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(hashes) == 1


def test_of_examples_with_the_same_input_none_is_left():
    """Whatever their targets and groups are: in train and test they would be a leak."""
    dark, light = np.zeros((2, 2, 3), np.uint8), np.ones((2, 2, 3), np.uint8)
    alone = [
        Example(("a",), target="x", group="1"),
        Example((), target="x", group="1", pixels=dark),
        Example(("a",), target="x", group="1", pixels=dark),
    ]
    repeated = [
        Example(("a", "b"), target="x", group="1"),
        Example(("a", "b"), target="y", group="2"),
        *[Example(("c",), target="x", group="1") for _ in range(3)],
        Example((), target="x", group="1", pixels=light),
        Example((), target="y", group="2", pixels=light.copy()),
    ]
    left = distinct(repeated + alone)
    assert [id(example) for example in left] == [id(example) for example in alone]


def test_groups_stay_whole():
    train, reward, final = divide(competition())
    groups = [{e.group for e in part} for part in (train, reward, final)]
    assert not groups[0] & groups[1]
    assert not groups[0] & groups[2]
    assert not groups[1] & groups[2]


@given(
    sizes=st.lists(st.integers(1, 7), min_size=12, max_size=30),
    train_rows=st.integers(1, 10),
    test_rows=st.integers(2, 20),
)
def test_division_of_any_groups(sizes, train_rows, test_rows):
    found = [
        Example((f"{g}-{k}",), target="x", group=str(g))
        for g, size in enumerate(sizes)
        for k in range(size)
    ]
    toy = competition(found, train_rows=train_rows, test_rows=test_rows)
    try:
        train, reward, final = divide(toy)
    except MleRlError:
        assert sum(sizes) < train_rows + test_rows + max(sizes)
        return
    assert len(train) == train_rows
    assert len(reward) + len(final) == test_rows
    assert abs(len(reward) - len(final)) <= max(sizes)
    groups = [{e.group for e in part} for part in (train, reward, final)]
    assert sum(map(len, groups)) == len(set.union(*groups))


def test_strata_are_equally_frequent():
    train, reward, final = divide(competition())
    assert Counter(e.stratum for e in train) == {"x": 20, "y": 20}
    assert Counter(e.stratum for e in reward) == Counter(e.stratum for e in final)


def test_too_few_examples_say_what_to_do():
    with pytest.raises(
        MleRlError, match=r"hold only \d+ more examples of x for toy, 500 are needed"
    ):
        divide(competition(test_rows=500))


def test_public_files_say_nothing_of_labels_and_splits():
    files = prepare(competition())
    assert list(rows(files, "public/test.csv")[0]) == ["id", "text", "code"]
    assert list(rows(files, "public/sample_submission.csv")[0]) == ["id", "label"]
    assert list(rows(files, "private/test.csv")[0]) == ["id", "label", "split"]
    answers = rows(files, "private/test.csv")
    ids = [row["id"] for row in answers]
    assert ids == [row["id"] for row in rows(files, "public/test.csv")] == sorted(ids)
    assert not set(ids) & {row["id"] for row in rows(files, "public/train.csv")}
    public = b"".join(content for name, content in files.items() if name.startswith("public/"))
    assert b"reward" not in public
    assert b"final" not in public


def test_ids_and_order_do_not_reveal_label_or_split():
    """Along the ids, labels and splits change about as often as in a shuffled list."""
    found = examples(groups=80, per_group=5)
    answers = rows(prepare(competition(found, test_rows=150)), "private/test.csv")
    for column in ("label", "split"):
        values = [row[column] for row in answers]
        changes = np.mean([a != b for a, b in pairwise(values)])
        assert 0.4 < changes < 0.6


def test_features_are_written_as_they_are():
    files = prepare(competition())
    assert {row["code"] for row in rows(files, "public/test.csv")} == {"001"}


def test_probabilities_have_a_column_for_each_class():
    files = prepare(competition(metric="log_loss", sample_predictions=()))
    assert rows(files, "public/sample_submission.csv")[0].items() >= {"x": "0.500000"}.items()
    answer = rows(files, "private/test.csv")[0]
    assert sorted((answer["x"], answer["y"])) == ["0", "1"]


def test_images_lie_in_the_order_of_their_rows():
    found = [
        Example((), target=str(k), group=str(k), pixels=np.full((2, 2, 1), k, np.uint8))
        for k in range(60)
    ]
    toy = competition(found, kind="image", features=(), sample_predictions=("0",))
    files = prepare(toy)
    for part in ("train", "test"):
        images = np.load(io.BytesIO(files[f"public/{part}_images.npy"]))
        source = "public/train.csv" if part == "train" else "private/test.csv"
        assert [int(row["label"]) for row in rows(files, source)] == images[:, 0, 0, 0].tolist()


def test_the_fingerprint_on_disk_is_the_hash_of_the_files(tmp_path):
    build(competition(), tmp_path / "toy")
    manifest = json.loads((tmp_path / "toy" / "manifest.json").read_text())
    assert manifest["sha256"] == fingerprint(tmp_path / "toy" / "prepared")
    assert manifest["sha256"] == hash_files(sorted(prepare(competition()).items()))
    assert manifest["versions"] == {"numpy": np.__version__}
    assert [p.name for p in tmp_path.iterdir()] == ["toy"]


def test_hash_tells_apart_where_a_file_ends():
    assert hash_files([("a", b"xy"), ("b", b"")]) != hash_files([("a", b"x"), ("b", b"y")])


def test_an_interrupted_build_leaves_nothing(tmp_path, monkeypatch):
    def interrupted(scratch, folder):
        raise KeyboardInterrupt

    monkeypatch.setattr(building, "_move_into_place", interrupted)
    with pytest.raises(KeyboardInterrupt):
        build(competition(), tmp_path / "toy")
    assert list(tmp_path.iterdir()) == []


def test_the_second_of_two_builders_keeps_what_the_first_built(tmp_path):
    build(competition(), tmp_path / "toy")
    inode = (tmp_path / "toy").stat().st_ino
    build(competition(), tmp_path / "toy")
    assert (tmp_path / "toy").stat().st_ino == inode
    assert [p.name for p in tmp_path.iterdir()] == ["toy"]


def test_a_folder_in_the_way_is_not_overwritten(tmp_path):
    (tmp_path / "toy").mkdir()
    (tmp_path / "toy" / "mine.txt").write_text("keep")
    with pytest.raises(MleRlError, match="Delete that folder"):
        build(competition(), tmp_path / "toy")
    assert (tmp_path / "toy" / "mine.txt").read_text() == "keep"


def test_a_data_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "data").write_text("a file")
    with pytest.raises(MleRlError, match="Cannot write task data below"):
        build(competition(), tmp_path / "data" / "toy")
