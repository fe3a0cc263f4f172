"""What the queue laboratory promises about time and memory, measured.

    python -m mle_rl.rollout.bench

Memory: ten million rollouts without a trace. Speed: rollouts per second beside the same model in
SimPy; five runs each, alternating, medians. Sliders: time of a redraw at every corner of the
ranges.

The model: 64 workers that sample, run for a log-normal time (sigma 1) and report; a learner that
takes batches of 64 in completion order and makes a new model version of each. SimPy gets it twice:
as its documentation would write it (a process per worker, a store, a process for the learner), and
as lean as it can be (workers only, a counter, a list). One core, seconds of CPU time; runs
alternate, so that whatever else the machine does falls on all alike.
"""

from __future__ import annotations

import argparse
import io
import resource
import statistics
import time
from collections.abc import Callable
from itertools import product

import numpy as np

from mle_rl.errors import MleRlError
from mle_rl.rollout.queue import QueueConfig
from mle_rl.rollout.simulation import EventSimulation, Learner, simulate
from mle_rl.rollout.simulation.durations import LogNormal
from mle_rl.rollout.simulation.workload import Workload

WORKERS = BATCH = 64
CONFIG = QueueConfig(workers=WORKERS, batch_size=BATCH, staleness="keep", ordering="completion")
WORK = Workload(noise=LogNormal.of_sigma(1.0))
RATE, TIMES, MEMORY_MB, REDRAW_MS = 200_000, 10, 500, 200  # what is promised


def ours(updates: int, seed: int) -> float:
    """The simulator as notebooks call it; returns the virtual time."""
    return simulate(CONFIG, WORK, updates=updates, rng=np.random.default_rng(seed)).elapsed_s


def ours_event_by_event(updates: int, seed: int) -> float:
    """The general driver, which every rule can use, on the same model."""
    rng = np.random.default_rng(seed)
    return EventSimulation(CONFIG, WORK, Learner(), None, rng).run(updates).elapsed_s


def simpy_idiomatic(updates: int, seed: int) -> float:
    """The model as SimPy's documentation would write it."""
    import simpy

    env = simpy.Environment()
    store = simpy.Store(env)
    durations = _durations(updates, seed)
    version = 0

    def worker():
        while True:
            sampled_by = version
            yield env.timeout(next(durations))
            yield store.put(sampled_by)

    def learner():
        nonlocal version
        while version < updates:
            for _ in range(BATCH):
                yield store.get()
            version += 1

    for _ in range(WORKERS):
        env.process(worker())
    env.run(env.process(learner()))
    return env.now


def simpy_lean(updates: int, seed: int) -> float:
    """The model with nothing in SimPy but the passing of time."""
    import simpy

    env = simpy.Environment()
    durations = _durations(updates, seed)
    finished = env.event()
    ready: list[int] = []
    version = 0

    def worker():
        nonlocal version
        while True:
            sampled_by = version
            yield env.timeout(next(durations))
            ready.append(sampled_by)
            if len(ready) == BATCH:
                ready.clear()
                version += 1
                if version == updates:
                    finished.succeed()

    for _ in range(WORKERS):
        env.process(worker())
    env.run(finished)
    return env.now


def _durations(updates: int, seed: int):
    """All durations drawn at once: SimPy is not charged for drawing them one by one."""
    n = (updates + 1) * BATCH + 2 * WORKERS
    return iter(WORK.noise.sample(n, np.random.default_rng(seed)).tolist())


CONTESTANTS: dict[str, tuple[Callable[[int, int], float], float]] = {
    "mle_rl": (ours, 1.0),
    "mle_rl, event by event": (ours_event_by_event, 0.2),
    "SimPy, idiomatic": (simpy_idiomatic, 0.1),
    "SimPy, as lean as possible": (simpy_lean, 0.2),
}
"""Name: the function, and the share of the rollouts it is given; the rate does not depend on it."""


def compare(rollouts: int = 2_000_000, runs: int = 5) -> dict[str, list[float]]:
    """Rollouts per second of every contestant, ``runs`` values each, alternating.

    Raises:
        MleRlError: SimPy is not installed.
    """
    try:
        import simpy  # noqa: F401
    except ImportError:
        raise MleRlError(
            "The benchmark compares with SimPy, which is not installed: pip install -e '.[dev]'."
        ) from None
    rates: dict[str, list[float]] = {name: [] for name in CONTESTANTS}
    for run in range(runs):
        for name, (function, share) in CONTESTANTS.items():
            updates = max(1, int(rollouts * share) // BATCH)
            began = time.process_time()
            virtual_s = function(updates, run)
            rates[name].append(updates * BATCH / (time.process_time() - began))
            expected = updates * BATCH * WORK.mean_s / WORKERS
            if updates > 500 and abs(virtual_s / expected - 1) > 0.05:
                raise AssertionError(f"{name} simulates another model: {virtual_s} s")
    return rates


def peak_memory_mb(rollouts: int) -> tuple[float, float]:
    """Peak resident memory of this process before and after that many rollouts without a trace.

    The peak is of the whole life of the process, so this is measured before anything else.
    """
    ours(100, 0)
    before = _peak_mb()
    ours(rollouts // BATCH, 0)
    return before, _peak_mb()


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def redraw_ms(repeats: int = 3) -> dict[str, list[float]]:
    """CPU milliseconds from a move of a slider to its picture, at every corner of the ranges.

    Simulation, drawing and rendering, as a notebook shows it; the first, which finds fonts, is left
    out.
    """
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    from mle_rl.analysis import style
    from mle_rl.rollout.laboratory.sliders import RANGES

    style()

    def redraw(draw: Callable, values: tuple) -> float:
        began = time.process_time()
        fig, _ = draw(*values)
        fig.savefig(io.BytesIO(), dpi=plt.rcParams["figure.dpi"])
        plt.close(fig)
        return 1000 * (time.process_time() - began)

    took = {}
    for draw, ranges in RANGES.items():
        corners = list(product(*[(first, last) for first, last, _ in ranges.values()]))
        redraw(draw, corners[0])
        took[f"{draw.__name__}({', '.join(ranges)})"] = [
            statistics.median(redraw(draw, corner) for _ in range(repeats)) for corner in corners
        ]
    return took


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rollouts", type=int, default=2_000_000, help="rollouts per run")
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()

    before, after = peak_memory_mb(10_000_000)
    print(
        f"peak memory: {before:.0f} MB before, {after:.0f} MB after 10 million rollouts "
        f"(promised: below {MEMORY_MB})\n"
    )
    rates = compare(arguments.rollouts, arguments.runs)
    first = statistics.median(rates["mle_rl"])
    print(f"{'rollouts per CPU second':32s} {'median':>11s} {'min':>11s} {'max':>11s}  times")
    for name, values in rates.items():
        median = statistics.median(values)
        row = f"{name:32s} {median:11,.0f} {min(values):11,.0f} {max(values):11,.0f}"
        print(f"{row}  {first / median:5.1f}")
    print(
        f"{arguments.runs} runs each, alternating; times: mle_rl is that many times as fast "
        f"(promised: {RATE:,} per second, {TIMES} times SimPy)\n"
    )
    print(f"{'redraw of a slider, CPU milliseconds':58s} {'median':>7s} {'max':>7s}")
    for name, values in redraw_ms().items():
        print(f"{name:58s} {statistics.median(values):7.0f} {max(values):7.0f}")
    print(f"over all corners of the ranges (promised: below {REDRAW_MS})")


if __name__ == "__main__":
    main()
