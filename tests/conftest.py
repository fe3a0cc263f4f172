"""What every test starts from: fixed seeds, one thread, a results folder of its own."""

import os
import random
import signal

# A shell that starts the tests in the background lets them ignore Ctrl-C, and all that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"  # read when a library loads, so before the first import
os.environ["MPLBACKEND"] = "agg"
os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"
os.environ["HF_HUB_OFFLINE"] = "1"  # no test may reach a model hub

import sys

import numpy as np
import pytest
from hypothesis import settings

# The same examples on every run and machine; how long one takes says nothing about correctness.
settings.register_profile("tests", deadline=None, derandomize=True)
settings.load_profile("tests")


@pytest.fixture(autouse=True)
def _same_start(tmp_path, monkeypatch):
    """Seeds of global generators (tests pass their own), threads, profile and results folder."""
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002 - third-party code under test may use the global generator
    if torch := sys.modules.get("torch"):
        torch.manual_seed(0)
        torch.set_num_threads(1)
    monkeypatch.setenv("MLE_RL_PROFILE", "smoke")
    monkeypatch.setenv("MLE_RL_RESULTS", str(tmp_path / "results"))
