"""What programs may see, told apart by path: a second name of a folder must not let it in."""

import os
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import pytest

import mle_rl
from mle_rl.sandbox import view

RUN = """
import sys
from pathlib import Path
from mle_rl.sandbox import Job, LocalPool
public, secret = map(Path, sys.argv[1:])
code = (
    "import os, sys, numpy, sklearn, tqdm.contrib\\n"
    "print(sys.prefix)\\n"
    f"print(os.path.exists({str(secret)!r}) and os.listdir({str(secret)!r}))\\n"
)
with LocalPool(1) as pool:
    execution = pool.run(Job(code, public))
    print(execution.status, pool.isolation, execution.stdout, execution.stderr)
"""


@pytest.fixture
def link(tmp_path):
    """The environment under another name, as when its folder is a link."""
    link = tmp_path / "linked"
    link.symlink_to(sys.prefix)
    return link


def test_programs_run_in_an_environment_that_is_a_link(link, tmp_path):
    public = tmp_path / "public"
    public.mkdir()
    python = link / Path(sys.executable).relative_to(sys.prefix)
    secret = Path(os.path.realpath(sys.prefix), "lib")  # holds nothing but this Python's packages
    statsmodels = next(secret.glob("python*/site-packages"), secret) / "statsmodels"
    result = subprocess.run(
        [python, "-c", RUN, public, statsmodels], capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 0, result.stderr
    status, rest = result.stdout.split(maxsplit=1)
    assert status == "ok", rest
    assert "namespaces" in rest
    assert rest.splitlines()[1] == "False"


@pytest.fixture
def in_the_way():
    """A folder of packages where programs in an environment below /tmp have their scratch space."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        (Path(folder) / "site-packages").mkdir()
        yield Path(folder) / "site-packages"


def test_programs_import_packages_that_lie_outside_the_environment(tmp_path, in_the_way):
    """As where one environment lies on top of another."""
    public = tmp_path / "public"
    public.mkdir()
    venv.create(tmp_path / "over", symlinks=True)
    python = tmp_path / "over" / "bin" / "python"
    (site,) = (tmp_path / "over").glob("lib/python*/site-packages")
    under = next(folder for folder in view.site_folders() if (folder / "numpy").is_dir())
    checkout = Path(mle_rl.__file__).parents[1]
    (site / "under.pth").write_text(f"{under}\n{in_the_way}\n{checkout}\n")
    result = subprocess.run(
        [python, "-c", RUN, public, under / "sklearn" / "datasets" / "data"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert result.returncode == 0, result.stderr
    status, rest = result.stdout.split(maxsplit=1)
    assert status == "ok", rest
    assert rest.splitlines()[1] == "[]", "it is there and appears empty"


def test_a_folder_of_packages_need_not_hold_every_one_of_them(tmp_path, monkeypatch):
    folder = tmp_path / "site-packages"
    (folder / "numpy").mkdir(parents=True)
    monkeypatch.setattr(view, "site_folders", lambda: [folder])
    shown = view.readable_paths({"numpy", "sklearn"})
    assert [path for path in shown if path.startswith(str(folder))] == [str(folder / "numpy")]


def test_a_link_inside_does_not_show_what_is_hidden(tmp_path):
    """As ``lib64 -> lib`` in a virtual environment."""
    (tmp_path / "lib/python/site-packages").mkdir(parents=True)
    (tmp_path / "lib/python/os.py").touch()
    (tmp_path / "lib64").symlink_to("lib")
    hidden = [tmp_path / "lib/python/site-packages"]
    assert view._without(tmp_path, hidden) == [str(tmp_path / "lib/python/os.py")]


def test_no_readable_path_leads_to_what_is_hidden(link, monkeypatch):
    """For the jail that has rules in place of a view of its own."""
    monkeypatch.setattr(sys, "prefix", str(link))
    monkeypatch.setattr(
        sys, "path", [p.replace(os.path.realpath(link), str(link)) for p in sys.path]
    )
    hidden = [folder.resolve() for folder in view.site_folders() + view.other_site_folders()]
    assert hidden
    shown = [Path(path).resolve() for path in view.readable_paths({"numpy"})]
    for folder in hidden:
        assert not [path for path in shown if path == folder or path in folder.parents]
        inside = {path.name for path in shown if path.parent == folder}
        assert inside <= {"numpy"}
