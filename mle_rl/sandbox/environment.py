"""The environment of servers and programs: built from nothing, so that nothing is left to scrub."""

from __future__ import annotations

import os
import sys

_THREAD_COUNTS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "POLARS_MAX_THREADS",
    "RAYON_NUM_THREADS",
    "LOKY_MAX_CPU_COUNT",
)


SEARCH_PATH = "/usr/local/bin:/usr/bin:/bin"


def environment(home: str, cores: int) -> dict[str, str]:
    """All environment variables of a process in the sandbox.

    Args:
        home: HOME, a program's scratch folder.
        cores: Threads that numerical libraries may use.
    """
    return {
        **dict.fromkeys(_THREAD_COUNTS, str(cores)),
        "HOME": home,
        "LANG": "C.UTF-8",
        "PATH": f"{os.path.dirname(sys.executable)}:{SEARCH_PATH}",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONUTF8": "1",
        "TZ": "UTC",
        # Arrow's allocator would start a thread at import, and no thread survives a fork.
        "JE_ARROW_MALLOC_CONF": "background_thread:false",
    }
