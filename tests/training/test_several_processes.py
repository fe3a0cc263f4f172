"""The trainer under TRL's launcher: weights and baselines are those of the whole batch."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import one_of_several
import pytest
import torch

SCRIPT = Path(one_of_several.__file__)


def step(out, processes):
    """What each process saw and was left with, after one step on the same eight rollouts."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    launched = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(processes)}
    running = [
        subprocess.Popen(
            [sys.executable, SCRIPT, out],
            env=os.environ
            | {"ACCELERATE_USE_CPU": "true"}
            | (launched | {"RANK": str(rank), "LOCAL_RANK": str(rank)} if processes > 1 else {}),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(processes)
    ]
    try:
        for process in running:
            said = process.communicate(timeout=300)[1]
            assert process.returncode == 0, said
    finally:  # one that waits for another that failed
        for process in running:
            process.kill()
    return [torch.load(out / f"{processes}-{rank}.pt") for rank in range(processes)]


@pytest.mark.slow
def test_two_processes_make_the_step_of_one(tmp_path):
    """Normalised in each process by itself, weights and baselines would be others."""
    (whole,) = step(tmp_path, 1)
    halves = step(tmp_path, 2)
    assert whole["duration_weights"].mean().item() == pytest.approx(1.0, abs=1e-6)
    assert abs(halves[0]["duration_weights"].mean().item() - 1) > 0.1
    for name in ("duration_weights", "advantages"):
        together = torch.cat([half[name] for half in halves])
        torch.testing.assert_close(together.sort()[0], whole[name].sort()[0])
    start = torch.cat([p.detach().flatten() for p in one_of_several.llama().parameters()])
    assert (whole["parameters"] - start).abs().max() > 1e-3
    for half in halves:
        torch.testing.assert_close(half["parameters"], whole["parameters"], atol=2e-6, rtol=1e-4)
