"""What every notebook starts with: profile, results folder, versions, threads.

Two environment variables are read here and nowhere else: ``MLE_RL_PROFILE`` (how much work) and
``MLE_RL_RESULTS`` (where the results go, instead of ``results/<profile>``).
"""

from __future__ import annotations

import json
import os
import platform
import re
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, is_dataclass
from importlib import metadata
from pathlib import Path

from mle_rl import __version__
from mle_rl.errors import MleRlError, unknown_name
from mle_rl.files import write_whole

PROFILES = ("smoke", "quick", "full")
"""From the least work to the most: does it run; real training in minutes; hours."""

PRINTED_VERSIONS = ("torch", "transformers", "trl", "scikit-learn", "numpy")
_MISSING = object()


@dataclass(frozen=True)
class Run:
    """One execution of one notebook.

    Attributes:
        name: Number and name of the notebook, for example ``"03_async_rollout_queue"``.
        profile: One of ``PROFILES``.
        results: Folder for everything this notebook writes; it exists and is writable.
    """

    name: str
    profile: str
    results: Path

    def pick(self, *, smoke, quick=_MISSING, full=_MISSING):
        """The value for this run's profile; one left out is that of the next smaller profile."""
        values = {"smoke": smoke, "quick": quick, "full": full}
        upto = PROFILES[: PROFILES.index(self.profile) + 1]
        return next(values[name] for name in reversed(upto) if values[name] is not _MISSING)

    def save_json(self, name: str, record) -> Path:
        """Write a record (dataclass or mapping) to ``<results>/<name>.json``, keys sorted.

        Raises:
            MleRlError: ``name`` is not a plain file name, or the folder cannot be written.
        """
        path = self.path(name, ".json")
        content = asdict(record) if is_dataclass(record) else dict(record)
        write(path, json.dumps(content, indent=1, sort_keys=True, default=str) + "\n")
        return path

    def path(self, name: str, suffix: str) -> Path:
        """Path of a result file; the name is lower-case words joined by underscores."""
        if not re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)*", name):
            raise MleRlError(
                f"{name!r} is not a name for a result file: use lower-case words and numbers "
                "joined by underscores, without folder or ending."
            )
        return self.results / f"{name}{suffix}"


def profile() -> str:
    """The profile that ``MLE_RL_PROFILE`` names; ``quick`` when it is unset or empty.

    Raises:
        MleRlError: It names no profile.
    """
    name = os.environ.get("MLE_RL_PROFILE") or "quick"
    if name not in PROFILES:
        raise unknown_name("profile (MLE_RL_PROFILE)", name, PROFILES)
    return name


def setup(name: str, *, threads: int = 1) -> Run:
    """Prepare a notebook: results folder, figure style, threads; prints versions once.

    Args:
        name: Number and name of the notebook, for example ``"03_async_rollout_queue"``.
        threads: Threads for numerical libraries in this process. One by default: sandbox workers
            use the other cores, and small models are faster on one thread then.

    Raises:
        MleRlError: Unknown profile, a malformed name, or a results folder that cannot be written.
    """
    if not re.fullmatch(r"[0-9]{2}[a-z]?(_[a-z0-9]+)+", name):
        raise MleRlError(
            f"{name!r} is no notebook name: give number and name, like '03_async_rollout_queue'."
        )
    chosen = profile()
    run = Run(name, chosen, results_folder(chosen) / name)
    write(run.results / "run.json", _run_record(run))
    limit_threads(threads)
    from mle_rl.analysis import style  # matplotlib takes half a second

    style()
    versions = ", ".join(f"{package} {version(package)}" for package in PRINTED_VERSIONS)
    print(f"{name}, profile {chosen}, {threads} thread(s)")
    print(f"mle_rl {__version__}, Python {platform.python_version()}, {versions}")
    print(f"results: {shown_path(run.results)}")
    return run


def project_root() -> Path:
    """The checkout this package lies in, or the working directory when it is installed apart."""
    checkout = Path(__file__).resolve().parent.parent
    return checkout if (checkout / "pyproject.toml").is_file() else Path.cwd()


def checkout_results(profile_name: str = "full") -> Path:
    """``results/<profile>`` of the checkout; that of ``full`` holds what is recorded for good."""
    return project_root() / "results" / profile_name


def results_folder(profile_name: str) -> Path:
    """``MLE_RL_RESULTS`` if set; a fresh temporary folder in smoke; else ``results/<profile>``."""
    if chosen := os.environ.get("MLE_RL_RESULTS"):
        return Path(chosen).expanduser().resolve()
    if profile_name == "smoke":
        return Path(tempfile.mkdtemp(prefix="mle_rl_smoke_"))
    return checkout_results(profile_name)


def shown_path(path: Path) -> str:
    """The path as committed outputs may show it: relative to the checkout, or only its end."""
    root = project_root()
    if path.is_relative_to(root):
        return path.relative_to(root).as_posix()
    return f".../{path.name}"


def write(path: Path, text: str) -> None:
    """Write a text file, making its folder; what the system refuses becomes one sentence.

    It is there as a whole or not at all, whenever the process is killed.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, text)
    except OSError as error:
        raise unwritable(path, error) from None


def unwritable(path: Path, error: OSError) -> MleRlError:
    """The error for a result that the system refuses to write."""
    return MleRlError(
        f"The results folder {path.parent} cannot be written ({error.strerror}): set "
        "MLE_RL_RESULTS to a folder where you may write."
    )


def version(package: str) -> str:
    """Version of an installed package, without importing it; ``absent`` if it is not installed."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "absent"


def limit_threads(threads: int) -> None:
    """Set the threads of numerical libraries, both of those loaded and of those still to come."""
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = str(threads)
    if "numpy" in sys.modules:
        from threadpoolctl import threadpool_limits

        threadpool_limits(threads)
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(threads)


def _run_record(run: Run) -> str:
    record: Mapping = {
        "notebook": run.name,
        "profile": run.profile,
        "versions": {name: version(name) for name in PRINTED_VERSIONS}
        | {"mle_rl": __version__, "python": platform.python_version()},
    }
    return json.dumps(record, indent=1, sort_keys=True) + "\n"
