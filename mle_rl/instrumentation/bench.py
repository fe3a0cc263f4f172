"""What instrumenting costs: ``python -m mle_rl.instrumentation.bench [TASK ...]``.

Every reference program runs plain and instrumented in turn, so that a busy machine slows both
alike; the order within a pair changes from pair to pair. CPU time is compared beside the duration,
because other work on the machine lengthens the one and not the other.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

import numpy as np

from mle_rl import tasks
from mle_rl.analysis.statistics import bootstrap_interval
from mle_rl.instrumentation import insert_by_syntax
from mle_rl.records import Limits
from mle_rl.sandbox import Job, LocalPool

PAIRS = 3
_LIMITS = Limits(timeout_s=60.0)


def finding_ms(code: str) -> float:
    """Milliseconds of CPU time for finding the places in a program; the best of three."""
    spent = []
    for _ in range(3):
        began = time.process_time()
        insert_by_syntax(code)
        spent.append(1000 * (time.process_time() - began))
    return min(spent)


def ratios(pool: LocalPool, task: tasks.Task, code: str) -> tuple[float, float]:
    """Instrumented over plain: duration and CPU time of a program, each the least of its runs."""
    plain = Job(code, task.public_dir, limits=_LIMITS)
    observed = Job(
        code, task.public_dir, insertions=insert_by_syntax(code).insertions, limits=_LIMITS
    )
    times = {plain: [], observed: []}
    for pair in range(PAIRS):
        for job in (plain, observed)[:: 1 if pair % 2 else -1]:
            execution = pool.run(job)
            if execution.status != "ok":
                raise RuntimeError(f"A reference program of {task.id} failed: {execution.stderr}")
            times[job].append((execution.duration_s, execution.cpu_s))
    least = {job: np.min(runs, axis=0) for job, runs in times.items()}
    duration, cpu = least[observed] / least[plain]
    return float(duration), float(cpu)


def main(names: Sequence[str]) -> None:
    """Measures on the reference programs of some tasks, all by default."""
    found, spent = [], []
    with LocalPool(1) as pool:
        for name in names or tasks.names():
            task = tasks.load(name)
            codes = [program.code for program in tasks.reference_programs(task)]
            spent += [finding_ms(code) for code in codes]
            found += [ratios(pool, task, code) for code in codes]
            print(f"{name}: {len(codes)} programs", flush=True)
    print(f"finding the places: median {np.median(spent):.1f} ms, at most {max(spent):.1f} ms")
    rng = np.random.default_rng(0)
    for what, values in zip(("duration", "CPU time"), np.array(found).T, strict=True):
        added = bootstrap_interval(100 * (values - 1), np.median, rng=rng)
        print(
            f"added {what}: median {added.point:+.2f} % of {len(values)} programs, 95 % interval "
            f"{added.low:+.2f} to {added.high:+.2f} %"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
