"""A pool over a Ray cluster (extra ``ray``), with the interface of `LocalPool`.

Each worker is an actor that holds a local worker on whatever node Ray places it. When a node is
lost, its job goes to another worker at once, and the worker waits until Ray has a place for it. The
public folders must lie at the same path on every node.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence
from typing import Any

from mle_rl.errors import MleRlError
from mle_rl.records import Execution
from mle_rl.sandbox import slots, view
from mle_rl.sandbox.backlog import WorkerLost
from mle_rl.sandbox.job import Job
from mle_rl.sandbox.pool import Tier, WorkerPool, check_choice
from mle_rl.sandbox.worker import LocalWorker

try:
    import ray
    from ray.exceptions import GetTimeoutError, RayError, RayTaskError
except ImportError:
    ray = None

_PLACE_S = 300.0
_LOOK_AGAIN_S = 5.0


class RayPool(WorkerPool):
    """Runs programs on the nodes of a Ray cluster, each isolated on its node.

    Args:
        workers: Programs that run at the same time; each takes one of Ray's CPUs.
        tier, packages: As for `LocalPool`.
        address: The cluster, as for ``ray.init``; ``"auto"`` is the one that is running here, None
            starts one on this machine. Ignored when this process is connected already.

    Raises:
        MleRlError: Ray is missing or has no place for a worker, or a node cannot enforce the tier.
    """

    def __init__(
        self,
        workers: int,
        tier: Tier = "isolated",
        packages: tuple[str, ...] = view.PROGRAM_PACKAGES,
        address: str | None = None,
    ) -> None:
        check_choice(workers, tier)
        if ray is None:
            raise MleRlError("RayPool needs Ray: pip install 'mle_rl[ray]', or use LocalPool.")
        if not ray.is_initialized():
            ray.init(address=address, log_to_driver=False)
        super().__init__([_RayWorker(tier, packages) for _ in range(workers)])


class _Holder:
    """The actor: one local worker, replaced when it is lost."""

    def __init__(self, tier: str, packages: Sequence[str]) -> None:
        # Ray decides where workers run: their numbers in the pool say nothing of who else is there.
        (slot,) = slots.claim(1)
        self._pool = WorkerPool([worker := LocalWorker(tier, packages, slot)])
        self._worker = worker

    def hello(self) -> tuple[str, dict[str, str]]:
        return self._worker.isolation, self._worker.versions

    def run(self, job: Job) -> Execution:
        return self._pool.run(job)


class _RayWorker:
    """An actor, seen from the pool; see `backlog.Worker`."""

    def __init__(self, tier: str, packages: Sequence[str]) -> None:
        self._arguments = (tier, packages)
        self._stopped = threading.Event()
        self._actor: Any = None
        self.isolation = ""
        self.versions: dict[str, str] = {}

    def start(self) -> None:
        holder = ray.remote(num_cpus=1, scheduling_strategy="SPREAD")(_Holder)
        self._actor = holder.remote(*self._arguments)

    def greet(self, patience_s: float = _PLACE_S) -> None:
        try:
            self.isolation, self.versions = ray.get(self._actor.hello.remote(), timeout=patience_s)
        except GetTimeoutError:
            raise MleRlError(
                f"Ray had no place for a sandbox worker within {patience_s:.0f} s: ask for fewer "
                "workers, or give the cluster more CPUs."
            ) from None
        except RayError as error:
            raise MleRlError(f"A sandbox worker did not start on Ray: {error}") from None

    def run(self, job: Job) -> Execution:
        try:
            return ray.get(self._actor.run.remote(job))
        except RayTaskError as error:  # raised by our own code there: no worker is lost
            raise error.cause from None
        except RayError:
            raise WorkerLost from None

    def replace(self) -> None:
        while True:
            self._kill()
            if self._stopped.is_set():
                raise WorkerLost
            self.start()
            with contextlib.suppress(MleRlError):  # no place yet: the cluster may grow again
                return self.greet(_LOOK_AGAIN_S)

    def stop(self) -> None:
        self._stopped.set()
        self._kill()

    def _kill(self) -> None:
        if self._actor is not None and ray.is_initialized():
            ray.kill(self._actor)
