"""The pool from outside: statuses, results, workers that die, nothing left behind."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import CancelledError
from pathlib import Path

import pytest

from mle_rl import MleRlError
from mle_rl.instrumentation import insert_by_syntax
from mle_rl.records import Limits
from mle_rl.sandbox import Job, LocalPool, fitting_workers, machine, run_all
from mle_rl.sandbox.processes import descendants, running

SLEEP = "import time; time.sleep(1000)"


def wait_until(condition) -> None:
    """Looks often, gives up late: for what other processes do in their own time."""
    for _ in range(3000):
        if condition():
            return
        time.sleep(0.02)
    raise AssertionError("it did not happen within a minute")


@pytest.fixture(scope="module")
def own_pool():
    """A pool whose processes may be killed, and what finds its launcher and its server."""
    before = set(descendants(os.getpid()))
    with LocalPool(1) as pool:
        yield pool, lambda: [pid for pid in descendants(os.getpid()) if pid not in before][:2]


def test_an_honest_program_reads_its_input_and_leaves_a_submission(pool, world):
    code = (
        "import pandas as pd\n"
        "pd.read_csv('input/train.csv').to_csv('submission.csv', index=False)\n"
        "print('done')\n"
    )
    execution = pool.run(Job(code, world.public))
    assert execution.status == "ok", execution.stderr
    assert execution.submission == b"id,x\n1,2\n2,4\n"
    assert execution.stdout == "done\n"
    assert execution.isolation.startswith("isolated")
    assert not execution.replayed
    assert set(execution.versions) == {"python", "numpy", "pandas", "scipy", "sklearn"}


def test_the_measures_are_of_the_program_alone(pool, world):
    trivial = pool.run(Job("pass", world.public))
    assert trivial.peak_memory_mb < 20
    assert trivial.cpu_s < 0.1
    # The process's clock began before the program did; only the difference may be charged.
    code = "import time\nb = time.process_time()\nx = bytearray(100 << 20)\n"
    heavy = pool.run(Job(code + "while time.process_time() < b + 0.3: pass", world.public))
    assert 100 <= heavy.peak_memory_mb < 130
    assert 0.3 <= heavy.cpu_s <= heavy.duration_s + 0.05


def test_memory_that_processes_share_counts_once(pool, world):
    code = "import os, time\nx = bytearray(50 << 20)\n"
    code += "for _ in range(4):\n    if os.fork() == 0: time.sleep(0.6); os._exit(0)\n"
    execution = pool.run(Job(code + "time.sleep(0.6)", world.public))
    assert execution.status == "ok"
    assert 50 <= execution.peak_memory_mb < 100


def test_cpu_time_of_children_and_orphans_counts(pool, world):
    burn = "b = time.process_time()\nwhile time.process_time() < b + 0.2: pass\n"
    child = (
        "import os, time\nif os.fork() == 0:\n"
        + textwrap.indent(burn, "    ")
        + "    os._exit(0)\n"
    )
    waited = pool.run(Job(child + "os.wait()", world.public))
    orphan = "import os, time\nr, w = os.pipe()\nif os.fork() == 0:\n    if os.fork() == 0:\n"
    orphan += textwrap.indent(burn, " " * 8) + "        os.write(w, b'x')\n    os._exit(0)\n"
    orphaned = pool.run(Job(orphan + "os.wait()\nos.read(r, 1)", world.public))
    assert waited.cpu_s >= 0.2
    assert orphaned.cpu_s >= 0.2


def test_output_keeps_its_beginning_and_its_end(pool, world):
    code = "print('first')\nfor i in range(10_000): print(i)\nprint('last')"
    execution = pool.run(Job(code, world.public, limits=Limits(output_bytes=1000)))
    assert execution.status == "ok"
    assert execution.stdout.startswith("first\n0\n1\n")
    assert execution.stdout.endswith("9999\nlast\n")
    assert "bytes left out" in execution.stdout
    assert len(execution.stdout) < 1100


def test_output_before_a_timeout_is_kept(pool, world):
    code = "print('fold 1')\nwhile True: pass"
    assert pool.run(Job(code, world.public, limits=Limits(timeout_s=0.5))).stdout == "fold 1\n"


def test_seeds_are_the_jobs(pool, world):
    code = "import random, numpy; print(random.random(), numpy.random.rand())"
    first, again, other = (
        pool.run(Job(code, world.public, seed=seed)).stdout for seed in (1, 1, 2**40)
    )
    assert first == again != other


def test_a_program_has_the_cores_that_it_is_given(pool, world):
    code = (
        "import os, threadpoolctl, sklearn.ensemble\n"
        "print(len(os.sched_getaffinity(0)), os.environ['OMP_NUM_THREADS'],\n"
        "      {i['num_threads'] for i in threadpoolctl.threadpool_info()})"
    )
    one = pool.run(Job(code, world.public)).stdout
    assert one == "1 1 {1}\n"
    if len(os.sched_getaffinity(0)) >= 2:
        two = pool.run(Job(code, world.public, limits=Limits(cpu_cores=2))).stdout
        assert two == "2 2 {2}\n"


def test_stages_that_the_program_reaches_arrive(pool, world):
    code = textwrap.dedent("""
        import pandas as pd
        from sklearn.linear_model import LinearRegression
        from sklearn.metrics import mean_squared_error
        table = pd.read_csv("input/train.csv")
        model = LinearRegression()
        model.fit(table[["id"]], table["x"])
        print(mean_squared_error(table["x"], model.predict(table[["id"]])))
        """)
    job = Job(code, world.public, insert_by_syntax(code).insertions)
    execution = pool.run(job)
    assert execution.status == "ok", execution.stderr
    stages = [marker.stage for marker in execution.markers]
    assert stages[:2] == ["packages_imported", "data_loaded"]
    assert "model_trained" in stages


def test_a_killed_server_is_replaced_and_the_job_run_once_more(own_pool, world):
    pool, find = own_pool
    _, server = find()
    future = pool.submit(Job("import time; time.sleep(1); print('done')", world.public))
    wait_until(future.running)
    time.sleep(0.2)
    os.kill(server, signal.SIGKILL)
    assert future.result().stdout == "done\n"


def test_a_killed_launcher_is_replaced_too(own_pool, world):
    pool, find = own_pool
    launcher, server = find()
    future = pool.submit(Job("import time; time.sleep(1); print('done')", world.public))
    wait_until(future.running)
    os.kill(launcher, signal.SIGKILL)
    assert future.result().stdout == "done\n"
    wait_until(lambda: not running(server))


def test_a_server_that_is_killed_while_it_starts_is_started_again(own_pool, world):
    pool, find = own_pool
    future = pool.submit(Job("import time; time.sleep(1); print('done')", world.public))
    wait_until(future.running)
    killed = []

    def kill_another() -> bool:
        for launcher in find()[:1]:  # none for a moment, between the old one and the new one
            if launcher not in killed:
                os.kill(launcher, signal.SIGKILL)
                killed.append(launcher)
        return len(killed) == 4

    wait_until(kill_another)
    assert future.result().stdout == "done\n"
    assert pool.run(Job("print(1)", world.public)).stdout == "1\n"


def test_a_job_under_which_the_server_dies_twice_is_killed(own_pool, world):
    pool, _ = own_pool
    future = pool.submit(Job(SLEEP, world.public, limits=Limits(timeout_s=100.0)))
    for _ in range(2):
        wait_until(lambda: programs())
        parent_of_program = int(Path(f"/proc/{programs()[0]}/stat").read_text().split()[3])
        os.kill(parent_of_program, signal.SIGKILL)
        wait_until(lambda: not programs())
    assert future.result().status == "killed"
    assert pool.run(Job("print(1)", world.public)).stdout == "1\n"


def programs() -> list[int]:
    """Programs that run: processes two PID namespaces below ours that are not the first there."""
    found = []
    for pid in descendants(os.getpid()):
        try:
            status = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            continue
        inner = status.partition("NSpid:")[2].split("\n")[0].split()
        if len(inner) == 3 and inner[2] != "1":
            found.append(pid)
    return found


def test_closing_ends_everything_at_once(world):
    before = set(descendants(os.getpid()))
    pool = LocalPool(2)
    job = Job(SLEEP, world.public, limits=Limits(timeout_s=500.0))
    futures = [pool.submit(job) for _ in range(5)]
    wait_until(lambda: len(programs()) == 2)
    launchers = set(children(os.getpid())) - before
    mine = [pid for launcher in launchers for pid in (launcher, *descendants(launcher))]
    pool.close()
    assert len(mine) >= 10
    assert not any(running(pid) for pid in mine)
    for future in futures:
        with pytest.raises(CancelledError):
            future.result(timeout=60)
    with pytest.raises(MleRlError, match="closed"):
        pool.submit(Job("pass", world.public))


def children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(word) for word in text.split()]


PARENT = """
import os, sys, time
from pathlib import Path
from mle_rl.records import Limits
from mle_rl.sandbox import Job, LocalPool
from mle_rl.sandbox.processes import descendants
public, tier, expected = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
daemon = "import os, time\\nif os.fork() == 0: os.setsid()\\ntime.sleep(500)"
with LocalPool(1, tier=tier) as pool:
    future = pool.submit(Job(daemon, public, limits=Limits(timeout_s=500.0)))
    while len(descendants(os.getpid())) < expected:
        time.sleep(0.02)
    mine = descendants(os.getpid())
    heir = os.fork()  # as data loaders do: it inherits the sockets to the servers
    if heir == 0:
        time.sleep(500)
    print(heir, *mine, flush=True)
    time.sleep(500)
"""


@pytest.mark.parametrize(
    ("tier", "number"),
    [
        ("isolated", signal.SIGKILL),
        pytest.param("isolated", signal.SIGINT, marks=pytest.mark.slow),
        pytest.param("limits", signal.SIGKILL, marks=pytest.mark.slow),
        pytest.param("limits", signal.SIGINT, marks=pytest.mark.slow),
    ],
)
def test_nothing_outlives_the_pools_process(world, tier, number):
    expected = {"isolated": 6, "limits": 4}[tier]
    command = [sys.executable, "-c", PARENT, str(world.public), tier, str(expected)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as parent:
        heir, *pids = (int(word) for word in parent.stdout.readline().split())
        assert len(pids) >= expected, parent.stderr.read()
        parent.send_signal(number)
        parent.wait(timeout=60)
        try:
            wait_until(lambda: not any(running(pid) for pid in pids))
        finally:
            os.kill(heir, signal.SIGKILL)


def test_a_forgotten_pool_ends_its_processes(world):
    before = set(descendants(os.getpid()))
    pool = LocalPool(1)
    mine = set(descendants(os.getpid())) - before
    assert len(mine) >= 3
    del pool
    wait_until(lambda: not any(running(pid) for pid in mine))


def test_the_end_of_a_forked_child_does_not_end_the_parents_pool(own_pool, world):
    pool, _ = own_pool
    pid = os.fork()
    if pid == 0:
        pool._end()
        os._exit(0)
    os.waitpid(pid, 0)
    assert pool.run(Job("print(1)", world.public)).stdout == "1\n"


def test_jobs_start_in_the_order_of_submission(pool, world):
    futures = [
        pool.submit(Job("import time; print(time.monotonic())", world.public)) for _ in range(5)
    ]
    starts = [float(future.result().stdout) for future in futures]
    assert starts == sorted(starts)


def test_a_batch_says_how_far_it_is(pool, world):
    said = io.StringIO()
    jobs = [Job(code, world.public) for code in ("print(0)", "1/0", "print(2)")]
    assert [e.stdout for e in run_all(pool, jobs, said)] == ["0\n", "", "2\n"]
    assert "3 done, 0 running, 1 failed" in said.getvalue()


def test_mistakes_get_a_sentence(pool, world, tmp_path):
    for arguments, words in (
        ((0,), "at least 1 worker"),
        ((1, "strict"), "no sandbox tier 'strict'"),
    ):
        with pytest.raises(MleRlError, match=words):
            LocalPool(*arguments)
    with pytest.raises(MleRlError, match="does not exist"):
        pool.submit(Job("pass", tmp_path / "missing"))
    with pytest.raises(MleRlError, match="see the answers"):
        pool.submit(Job("pass", world.public.parent))
    with pytest.raises(MleRlError, match="which programs can see"):
        pool.submit(Job("pass", Path(sys.prefix, "lib")))


def test_links_in_a_folder_that_is_closed_to_others_lead_nowhere(pool, tmp_path):
    public, private = tmp_path / "public", tmp_path / "private"
    public.mkdir(mode=0o700)
    private.mkdir()
    (private / "answers.csv").write_text("secret")
    (public / "train.csv").write_text("id\n")
    (public / "file").symlink_to("../private/answers.csv")
    (public / "folder").symlink_to("../private")
    code = "import os\nprint(open('input/train.csv').read())\nfor path in PATHS:\n"
    code += "    try: print(os.path.exists(path), open(path).read())\n"
    code += "    except OSError as error: print(error)\n"
    paths = ["input/file", "input/folder/answers.csv"]
    execution = pool.run(Job(code.replace("PATHS", repr(paths)), public))
    assert execution.stdout.startswith("id\n")
    assert execution.stdout.count("No such file") == 2
    assert "secret" not in execution.stdout


def test_another_system_gets_a_sentence(monkeypatch):
    monkeypatch.setattr("sys.platform", "darwin")
    with pytest.raises(MleRlError, match="needs Linux"):
        LocalPool(1)


def test_a_public_folder_that_programs_cannot_read_is_no_fault_of_theirs(pool, tmp_path):
    (tmp_path / "train.csv").write_text("id\n")
    (tmp_path / "train.csv").chmod(0)
    if os.geteuid() != 0:
        pytest.skip("only root's programs run as another user")
    with pytest.raises(MleRlError, match="chmod"):
        pool.run(Job("pass", tmp_path))


def test_workers_fit_the_machine():
    assert 1 <= fitting_workers() <= len(os.sched_getaffinity(0))
    assert fitting_workers(Limits(memory_mb=10**9)) == 1


@pytest.mark.parametrize(
    ("files", "workers"),
    [
        ({"cpu.max": "300000 100000", "memory.max": str(100 << 30)}, 3),
        ({"cpu.max": "50000 100000", "memory.max": "max"}, 1),
        ({"cpu.max": "max 100000", "memory.max": str(10 << 30)}, 3),  # 8 GiB for 2.25 each
        ({"cpu/cpu.cfs_quota_us": "200000", "cpu/cpu.cfs_period_us": "100000"}, 2),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, 8),
        ({"memory/memory.limit_in_bytes": str(5 << 30)}, 1),
    ],
)
def test_workers_fit_the_container(monkeypatch, tmp_path, files, workers):
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(machine, "CGROUPS", tmp_path)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: range(8))
    monkeypatch.setattr("os.sysconf", {"SC_PHYS_PAGES": 64 << 18, "SC_PAGE_SIZE": 4096}.get)
    assert fitting_workers() == workers
