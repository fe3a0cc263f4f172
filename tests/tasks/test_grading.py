"""Grading by id, on two hidden splits, without ever blaming a program for a damaged task."""

import csv
import io
import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mle_rl import MleRlError
from mle_rl.tasks import Grade, grade, load_folder
from mle_rl.tasks.grading import read_answers

ROWS = [("a", "1", "reward"), ("b", "2", "final"), ("c", "3", "reward"), ("d", "5", "final")]


def _csv(rows) -> bytes:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows([("id", "target"), *rows])
    return text.getvalue().encode()


def test_each_split_is_scored_on_its_own_rows(make_task):
    task = make_task("rmsle", ROWS)
    perfect = grade(task, _csv([(k, v) for k, v, _ in ROWS]))
    assert perfect == Grade(valid=True, reward_score=0.0, final_score=0.0)
    wrong_on_final = grade(task, _csv([("a", "1"), ("b", "9"), ("c", "3"), ("d", "9")]))
    assert wrong_on_final.reward_score == 0.0
    assert wrong_on_final.final_score > 0.3


@pytest.fixture(scope="module")
def module_task(tmp_path_factory):
    folder = tmp_path_factory.mktemp("module") / "toy" / "prepared"
    (folder / "public").mkdir(parents=True)
    (folder / "private").mkdir()
    (folder / "public" / "sample_submission.csv").write_text("id,target\n")
    rows = "".join(",".join(row) + "\n" for row in ROWS)
    (folder / "private" / "test.csv").write_text("id,target,split\n" + rows)
    return load_folder(folder.parent, "rmsle")


@given(order=st.permutations(range(4)))
def test_rows_meet_by_id_never_by_position(module_task, order):
    predictions = [("a", "4"), ("b", "0"), ("c", "3"), ("d", "6")]
    shuffled = [predictions[k] for k in order]
    assert grade(module_task, _csv(shuffled)) == grade(module_task, _csv(predictions))


def test_swapping_two_predictions_changes_the_score(make_task):
    task = make_task("rmsle", ROWS)
    right = grade(task, _csv([("a", "1"), ("b", "2"), ("c", "3"), ("d", "5")]))
    swapped = grade(task, _csv([("a", "3"), ("b", "2"), ("c", "1"), ("d", "5")]))
    assert right.reward_score != swapped.reward_score


def test_zero_is_a_valid_score(make_task):
    rows = [("a", "cat", "reward"), ("b", "dog", "final")]
    wrong = grade(make_task("accuracy", rows), _csv([("a", "dog"), ("b", "cat")]))
    assert wrong == Grade(valid=True, reward_score=0.0, final_score=0.0)


def test_a_score_undefined_on_one_split_is_no_score(make_task):
    task = make_task("pearson", ROWS)
    constant_on_reward = grade(task, _csv([("a", "1"), ("b", "2"), ("c", "1"), ("d", "5")]))
    assert not constant_on_reward.valid
    assert constant_on_reward.reward_score is None
    assert constant_on_reward.final_score is None
    assert "undefined" in constant_on_reward.problem


def test_what_the_sandbox_says_about_the_file_is_passed_on(make_task):
    task = make_task("rmsle", ROWS)
    sound = _csv([(k, v) for k, v, _ in ROWS])
    assert grade(task, sound, "submission.csv is a link.").problem == "submission.csv is a link."
    assert grade(task, None).problem == "The program wrote no submission.csv."


def test_labels_that_only_training_rows_have_are_labels(make_task):
    rows = [("a", "cat", "reward"), ("b", "dog", "final")]
    task = make_task("accuracy", rows, train=[("t", "fish")])
    assert grade(task, _csv([("a", "fish"), ("b", "dog")])).final_score == 1.0
    assert "'bird'" in grade(task, _csv([("a", "bird"), ("b", "dog")])).problem


def test_without_a_split_column_a_hash_of_the_id_decides(make_task):
    rows = [(f"row{k}", str(k)) for k in range(40)]
    task = make_task("rmsle", rows, columns=("id", "target"))
    shares = {name: len(r) for name, r in read_answers(task).rows.items()}
    assert sum(shares.values()) == 40
    assert min(shares.values()) >= 10
    turned = make_task("rmsle", rows[::-1], columns=("id", "target"), name="turned")
    by_id = [
        {answers.ids[k] for k in answers.rows["reward"]}
        for answers in (read_answers(task), read_answers(turned))
    ]
    assert by_id[0] == by_id[1]


@pytest.mark.parametrize(
    ("metric", "rows", "columns", "expected"),
    [
        ("rmsle", [("a", "x", "reward"), ("b", "1", "final")], None, "cannot be read"),
        ("rmsle", [("a", "1", "reward"), ("b", "1", "reward")], None, "no row in the final split"),
        ("roc_auc", [("a", "1", "reward"), ("b", "0", "final")], None, "cannot be scored"),
        ("pearson", [("a", "1", "reward"), ("b", "2", "final")], None, "cannot be scored"),
    ],
)
def test_damaged_answers_are_our_fault(make_task, metric, rows, columns, expected):
    task = make_task(metric, rows)
    with pytest.raises(MleRlError, match=expected):
        grade(task, _csv([("a", "1"), ("b", "1")]))


def test_missing_answers_are_our_fault(make_task):
    task = make_task("rmsle", ROWS)
    task.answers_path.unlink()
    with pytest.raises(MleRlError, match="answers of toy are missing"):
        grade(task, _csv([(k, v) for k, v, _ in ROWS]))


def test_answers_are_read_again_when_the_file_changes(make_task):
    task = make_task("rmsle", ROWS)
    submission = _csv([(k, v) for k, v, _ in ROWS])
    assert grade(task, submission).reward_score == 0.0
    text = task.answers_path.read_text().replace("a,1,", "a,7,")
    task.answers_path.write_text(text)
    os.utime(task.answers_path, ns=(1, 1))
    assert grade(task, submission).reward_score > 0.0


def test_an_mle_bench_folder_loads_under_other_file_names(tmp_path):
    prepared = tmp_path / "spooky-author-identification" / "prepared"
    (prepared / "public").mkdir(parents=True)
    (prepared / "private").mkdir()
    (prepared / "public" / "sampleSubmission.csv").write_text("key,EAP,HPL\n0,0.5,0.5\n")
    (prepared / "public" / "description.md").write_text("# Spooky\n")
    rows = "".join(f"i{k},{k % 2},{1 - k % 2}\n" for k in range(20))
    (prepared / "private" / "answers.csv").write_text("key,EAP,HPL\n" + rows)
    (prepared / "private" / "notes.csv").write_text("other\n1\n")
    task = load_folder(prepared.parent, "log_loss", kind="text")
    assert task.id == "spooky-author-identification"
    assert task.submission_columns == ("key", "EAP", "HPL")
    assert task.description == "# Spooky\n"
    half = "key,EAP,HPL\n" + "".join(f"i{k},0.5,0.5\n" for k in range(20))
    assert grade(task, half.encode()).final_score == pytest.approx(0.693147, abs=1e-6)


def test_answers_with_a_repeated_id_are_our_fault(make_task):
    task = make_task("rmsle", [*ROWS, ("a", "4", "final")])
    with pytest.raises(MleRlError, match="repeated ids"):
        grade(task, _csv([("a", "1")]))


def test_an_mle_bench_folder_whose_sample_is_not_id_first(tmp_path):
    """detecting-insults: the comment is the id, a date comes along, two private files fit."""
    prepared = tmp_path / "insults" / "prepared"
    (prepared / "public").mkdir(parents=True)
    (prepared / "private").mkdir()
    header = "Insult,Date,Comment"
    rows = "".join(f'{k % 2},2012,"comment, {k}"\n' for k in range(40))
    (prepared / "public" / "sample_submission_null.csv").write_text(header + "\n")
    (prepared / "private" / "test.csv").write_text(header + "\n" + rows)
    (prepared / "private" / "gold_submission.csv").write_text(header + "\n" + rows)
    task = load_folder(prepared.parent, "roc_auc", kind="text", columns=("Comment", "Insult"))
    assert task.answers_path.name == "test.csv"
    assert grade(task, (header + "\n" + rows).encode()).final_score == 1.0
    without_date = "Comment,Insult\n" + "".join(f'"comment, {k}",{1 - k % 2}\n' for k in range(40))
    assert grade(task, without_date.encode()).final_score == 0.0
    assert "'User' does not belong" in grade(task, b"User,Comment,Insult\na,b,1\n").problem


def test_folders_that_are_not_competitions(tmp_path, make_task):
    with pytest.raises(MleRlError, match="not a prepared competition"):
        load_folder(tmp_path, "rmsle")
    task = make_task("rmsle", ROWS)
    with pytest.raises(MleRlError, match=r"no metric 'rmse'.*rmsle"):
        load_folder(task.folder, "rmse")
    with pytest.raises(MleRlError, match="no answers file 'gold.csv'"):
        load_folder(task.folder, "rmsle", answers="gold.csv")
    (task.public_dir / "sample_two.csv").write_text("id,target\n")
    with pytest.raises(MleRlError, match=r"found sample_submission.csv, sample_two.csv"):
        load_folder(task.folder, "rmsle")
