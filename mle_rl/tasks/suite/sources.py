"""Find the data files of installed packages without importing the packages."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from mle_rl.errors import MleRlError


def package_file(package: str, relative: str) -> Path:
    """Path of a file that an installed package ships.

    Raises:
        MleRlError: When the package or the file is missing.
    """
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise MleRlError(f"The package {package} is not installed; install mle_rl again.")
    path = Path(spec.submodule_search_locations[0]) / relative
    if not path.is_file():
        raise MleRlError(
            f"The installed {package} does not ship {relative}. "
            f"Install the version of {package} that constraints.txt names."
        )
    return path
