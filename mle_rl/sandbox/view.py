"""What a program can see of this machine's files: an allow-list, everything else is absent.

Visible are the system's libraries and tools, this Python, and those installed packages that a
program for a competition needs, with what they depend on. Everything else that is installed stays
hidden, because the offline tasks are built from data and texts that packages ship: a program that
could read those packages would find the answers there.
"""

from __future__ import annotations

import glob
import importlib.metadata
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path

PROGRAM_PACKAGES = (
    "numpy",
    "pandas",
    "scipy",
    "scikit-learn",
    "pyarrow",
    "pillow",
    "tqdm",
    "polars",
    "xgboost",
    "lightgbm",
    "catboost",
    "imbalanced-learn",
    "torch",
    "torchvision",
    # numpy.f2py, which scipy.signal imports, tries this one and stumbles over a file that it finds
    # and may not read, as it is where there is no view of files of the program's own.
    "charset-normalizer",
)
"""Distributions that programs may import, each with its dependencies, where installed."""

ANSWER_SOURCES = (
    "sklearn/datasets/images",
    "sklearn/datasets/data",
    "statsmodels/datasets",
)
"""Folders inside visible packages whose contents tasks are built from; they appear empty."""

SYSTEM_FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store")
SYSTEM_FILES = ("/etc/ld.so.cache", "/etc/localtime", "/etc/alternatives")
_KINDS = ("site", "dist")
DEVICES = ("/dev/null", "/dev/full", "/dev/random", "/dev/urandom")


def package_entries(roots: Iterable[str] = PROGRAM_PACKAGES) -> set[str]:
    """Top-level names inside site-packages that belong to roots and what they require."""
    distributions, waiting = {}, list(roots)
    while waiting:
        name = _canonical(waiting.pop())
        if name in distributions:
            continue
        try:
            distributions[name] = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        for requirement in distributions[name].requires or ():
            if not re.search(r"\bextra\s*==", requirement):
                waiting.append(re.match(r"[\w.-]+", requirement).group())
    files = (file for dist in distributions.values() for file in dist.files or ())
    return {file.parts[0] for file in files if file.parts[0] != ".."}


def _canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def site_folders() -> list[Path]:
    """The folders that this interpreter imports installed packages from."""
    found = [Path(path) for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    return [folder for folder in dict.fromkeys(found) if folder.is_dir()]


def other_site_folders() -> list[Path]:
    """Folders of installed packages that are visible, but not this interpreter's: to be hidden."""
    prefixes = ["/usr", "/usr/local", *interpreter_folders()]
    patterns = [f"{prefix}/lib*/python*/{kind}-packages" for prefix in prefixes for kind in _KINDS]
    found = [Path(path) for pattern in patterns for path in glob.glob(pattern)]
    mine = {folder.resolve() for folder in site_folders()}
    return [f for f in dict.fromkeys(found) if f.resolve() not in mine and not f.is_symlink()]


def visible_folder_around(path: Path) -> str | None:
    """The folder that programs can see and that holds a path, if there is one."""
    around = {str(parent) for parent in path.resolve().parents}
    return next((f for f in (*SYSTEM_FOLDERS, *interpreter_folders()) if f in around), None)


def interpreter_folders() -> list[str]:
    """Where this Python lives: virtual environment, base installation, and what links lead to."""
    executable = os.path.realpath(sys.executable)
    folders = [sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix]
    folders.append(os.path.dirname(os.path.dirname(executable)))
    real = [os.path.realpath(folder) for folder in folders]
    wanted = dict.fromkeys(folder for folder in folders + real if folder != "/")
    return [f for f in wanted if not any(f.startswith(s + "/") or f == s for s in SYSTEM_FOLDERS)]


def readable_by_others() -> bool:
    """Whether a user without any rights here could run this Python and import what is visible."""
    folders = [Path(folder) for folder in interpreter_folders()] + site_folders()
    folders.append(Path(os.__file__).parent)
    inner = [entry for folder in site_folders() for entry in folder.iterdir()]
    return all(path.stat().st_mode & 0o004 for path in folders + inner)


def readable_paths(entries: set[str]) -> list[str]:
    """Everything that `namespaces.build_root` shows, as paths for rules that cannot subtract."""
    paths = [*SYSTEM_FILES, "/etc/passwd", "/etc/group", "/etc/nsswitch.conf"]
    # A rule holds for what a path leads to, so a folder must not slip in under another name.
    hidden = [folder.resolve() for folder in site_folders() + other_site_folders()]
    for folder in (*SYSTEM_FOLDERS, *interpreter_folders()):
        paths += _without(Path(folder).resolve(), hidden)
    for folder in site_folders():
        sources = [(folder / source).resolve() for source in ANSWER_SOURCES]
        for entry in entries:
            paths += _without((folder / entry).resolve(), sources)
    return [path for path in dict.fromkeys(paths) if os.path.exists(path)]


def _without(path: Path, hidden: list[Path]) -> list[str]:
    """A path, or where it holds something hidden, the parts of it that do not; none if absent."""
    if path in hidden or any(folder in path.parents for folder in hidden) or not path.exists():
        return []
    if not any(path in inner.parents for inner in hidden):
        return [str(path)]
    # Links are left out: what one leads to is visible by its own name or not at all.
    children = [child for child in path.iterdir() if not child.is_symlink()]
    return [part for child in children for part in _without(child, hidden)]
