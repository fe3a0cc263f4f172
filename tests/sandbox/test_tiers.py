"""The tiers beside the default: Landlock alone, bubblewrap, limits; and the refusals."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys

import pytest

from mle_rl.records import Limits
from mle_rl.sandbox import Job, LocalPool, launcher

HONEST = """
import pandas as pd, tempfile, subprocess, sys
from sklearn.ensemble import RandomForestClassifier
table = pd.read_csv("input/train.csv")
RandomForestClassifier(3, n_jobs=2).fit(table, table["x"])
open(tempfile.mkdtemp() + "/x", "w").write("x")
subprocess.run([sys.executable, "-c", "import scipy.signal"], check=True)
table.to_csv("submission.csv", index=False)
print("done")
"""
ATTACKS = {
    "absolute path": "print(open(ANSWERS).read())",
    "link": "print(open('input/detour.csv').read())",
    "process folders": "print(Path(f'/proc/{VICTIM}/environ').read_bytes())",
    "home": "print(open(HOME_FILE).read())",
    "kill": "os.kill(VICTIM, signal.SIGKILL); escaped()",
    "TCP": "socket.create_connection(('127.0.0.1', TCP), timeout=3); escaped()",
    "UDP": "socket.socket(2, 2).sendto(b'x', ('127.0.0.1', UDP)); escaped()",
    "abstract socket": "socket.socket(1).connect(ABSTRACT); escaped()",
    "socket file": "socket.socket(1).connect(UNIX_PATH); escaped()",
    "library": "import mle_rl.tasks; escaped()",
    "photographs": (
        "import sklearn.datasets\n"
        "folder = Path(sklearn.datasets.__file__).parent / 'images'\n"
        "print([p.read_bytes() for p in folder.iterdir()][0]); escaped()"
    ),
    "packages that answers come from": (
        "import numpy\n"
        "file = Path(numpy.__file__).parents[1] / 'statsmodels/api.py'\n"
        "print(file.read_text()); escaped()"
    ),
    "writing data": "open('input/train.csv', 'w'); escaped()",
    "writing libraries": "open(os.__file__, 'a'); escaped()",
    "writing elsewhere": "open('/var/x', 'w'); escaped()",
    "tracing": "escaped(libc.ptrace(16, VICTIM, 0, 0) == 0); sys.exit(1)",
}
# Runs where user namespaces are used up: the isolated tier has to do without.
WITHOUT_NAMESPACES = """
import json, sys
from pathlib import Path
from mle_rl.records import Limits
from mle_rl.sandbox import Job, LocalPool
codes = json.load(sys.stdin)
with LocalPool(1) as pool:
    jobs = {n: Job(c, Path(sys.argv[1]), limits=Limits(timeout_s=120.0)) for n, c in codes.items()}
    runs = {name: pool.run(job) for name, job in jobs.items()}
print(json.dumps({n: [e.status, e.stdout, e.stderr, e.isolation] for n, e in runs.items()}))
"""
NO_MORE = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'


def test_landlock_alone_isolates_too(world, attack):
    mode = (world.public / "train.csv").stat().st_mode
    codes = {"honest": HONEST, "modes": "import os; os.chmod('input/train.csv', 0)"}
    codes |= {name: world.prelude + code for name, code in ATTACKS.items()}
    command = ["unshare", "--user", "--map-root-user", "sh", "-c", NO_MORE, "sh"]
    result = subprocess.run(
        [*command, sys.executable, "-c", WITHOUT_NAMESPACES, str(world.public)],
        input=json.dumps(codes),
        capture_output=True,
        text=True,
        check=False,
    )
    if "Operation not permitted" in result.stderr and "unshare" in result.stderr:
        pytest.skip("user namespaces cannot be switched off here")
    if "Landlock" in result.stderr and launcher.landlock.abi() < launcher.ENOUGH_LANDLOCK:
        return  # refused, as it must be
    runs = json.loads(result.stdout)
    status, stdout, stderr, isolation = runs.pop("honest")
    assert (status, stdout, isolation.count("no namespaces")) == ("ok", "done\n", 1), stderr
    assert runs.pop("modes")[0] == "ok"
    assert (world.public / "train.csv").stat().st_mode == mode
    for name, (status, stdout, stderr, _) in runs.items():
        assert status == "error", name
        assert "ESCAPED" not in stdout, name
        assert world.secret not in stdout + stderr, name
    assert world.untouched()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is not installed")
def test_bubblewrap_isolates_too(world):
    with LocalPool(1, tier="bubblewrap") as pool:
        assert pool.isolation.startswith("bubblewrap: user, pid, net, mount")
        honest = Job(HONEST, world.public, limits=Limits(timeout_s=120.0))
        assert pool.run(honest).stdout == "done\n"
        for name, code in ATTACKS.items():
            execution = pool.run(Job(world.prelude + code, world.public))
            shown = execution.stdout + execution.stderr
            assert "ESCAPED" not in execution.stdout, name
            assert world.secret not in shown, name
    assert world.untouched()


def test_limits_say_what_they_are(world):
    with LocalPool(1, tier="limits") as pool:
        execution = pool.run(Job(HONEST, world.public, limits=Limits(timeout_s=120.0)))
    assert execution.stdout == "done\n"
    assert execution.isolation == "limits: resource limits only, nothing is isolated"
