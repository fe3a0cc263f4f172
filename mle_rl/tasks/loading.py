"""Load a competition of the offline suite; build it on first use."""

from __future__ import annotations

import json
import warnings
from functools import lru_cache
from importlib import resources
from pathlib import Path

from mle_rl.errors import MleRlError, unknown_name
from mle_rl.tasks.building import Competition, build
from mle_rl.tasks.suite import COMPETITIONS
from mle_rl.tasks.task import Task, load_folder


class TaskDriftWarning(UserWarning):
    """The task on this machine is not the one that the committed figures were measured on."""


def names() -> tuple[str, ...]:
    """Ids of the offline suite."""
    return tuple(COMPETITIONS)


def default_data_dir() -> Path:
    """``data/tasks`` of the repository, or of the working folder for an installed package."""
    repository = Path(__file__).resolve().parents[2]
    root = repository if (repository / "pyproject.toml").is_file() else Path.cwd()
    return root / "data" / "tasks"


def load(name: str, data_dir: str | Path | None = None) -> Task:
    """A competition of the offline suite.

    The first call builds it from installed packages, in some seconds, into
    ``<data_dir>/<name>/prepared``. Every call verifies the files against their recorded hash.

    Args:
        name: One of :func:`names`.
        data_dir: Folder of the competitions; ``data/tasks`` of the repository by default.

    Raises:
        MleRlError: For an unknown name, a folder that cannot be written, or damaged files.

    Warns:
        TaskDriftWarning: When other versions of the sources give other data than the published.
    """
    if name not in COMPETITIONS:
        raise unknown_name("task", name, COMPETITIONS)
    competition = COMPETITIONS[name]
    folder = Path(data_dir or default_data_dir()) / name
    if not folder.exists():
        build(competition, folder)
    manifest = _read_manifest(folder)
    task = load_folder(
        folder,
        competition.metric,
        kind=competition.kind,
        title=competition.title,
        sample="sample_submission.csv",
        answers="test.csv",
    )
    if task.fingerprint != manifest["sha256"]:
        raise MleRlError(
            f"The files of {name} in {folder} have changed since they were built. "
            "Delete that folder and load the task again."
        )
    _warn_of_drift(competition, folder, manifest)
    return task


def _read_manifest(folder: Path) -> dict:
    try:
        manifest = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        return {"sha256": str(manifest["sha256"]), "versions": dict(manifest["versions"])}
    except (OSError, ValueError, KeyError, TypeError):
        raise MleRlError(
            f"{folder} is not a complete task folder (manifest.json is missing or damaged). "
            "Delete that folder and load the task again."
        ) from None


@lru_cache(maxsize=1)
def published() -> dict[str, dict]:
    """For each task the hash and the source versions behind the committed leaderboards."""
    text = resources.files("mle_rl.tasks").joinpath("published.json").read_text(encoding="utf-8")
    return json.loads(text)


def _warn_of_drift(competition: Competition, folder: Path, manifest: dict) -> None:
    expected = published().get(competition.id)
    if expected is None or expected["sha256"] == manifest["sha256"]:
        return
    differing = [
        f"{name} {manifest['versions'].get(name, 'absent')} instead of {version}"
        for name, version in expected["versions"].items()
        if manifest["versions"].get(name) != version
    ]
    if differing:
        reason = f"built from {', '.join(differing)}"
        advice = "Install with constraints.txt, then delete the folder to get the same"
    else:
        reason = "though built from the same versions"
        advice = "Delete the folder to rebuild it with this version of mle_rl"
    warnings.warn(
        f"The data of {competition.id} in {folder} differ from the published ones ({reason}): "
        f"scores do not compare with the committed leaderboard. {advice}.",
        TaskDriftWarning,
        stacklevel=3,
    )
