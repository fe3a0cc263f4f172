"""The pool from outside: statuses, results, workers that die, nothing left behind."""

from __future__ import annotations

import pytest

from mle_rl.records import Limits
from mle_rl.sandbox import Job, LocalPool


@pytest.fixture(scope="module")
def pool():
    with LocalPool(1) as pool:
        yield pool


@pytest.fixture(scope="module")
def public(tmp_path_factory):
    folder = tmp_path_factory.mktemp("public")
    (folder / "train.csv").write_text("id,x\n1,2\n")
    return folder


def test_an_honest_program_reads_its_input_and_leaves_a_submission(pool, public):
    code = (
        "import pandas as pd\n"
        "pd.read_csv('input/train.csv').to_csv('submission.csv', index=False)\n"
        "print('done')\n"
    )
    execution = pool.run(Job(code, public))
    assert execution.status == "ok", execution.stderr
    assert execution.submission == b"id,x\n1,2\n"
    assert execution.stdout == "done\n"
    assert execution.isolation.startswith("isolated")


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("pass", "ok"),
        ("1 / 0", "error"),
        ("raise SystemExit(3)", "error"),
        ("def broken(:", "error"),
        ("while True: pass", "timeout"),
        (
            "x = bytearray(300 << 20); input_ = [bytearray(1 << 20) for _ in range(600)]; 1/0",
            "out_of_memory",
        ),
        ("import os; os.kill(os.getpid(), 9)", "killed"),
    ],
)
def test_each_end_has_its_status(pool, public, code, status):
    limits = Limits(timeout_s=3.0, memory_mb=256)
    assert pool.run(Job(code, public, limits=limits)).status == status
