"""Running programs that a language model wrote: isolated, limited, measured."""

from mle_rl.sandbox.batch import run_all
from mle_rl.sandbox.job import Job
from mle_rl.sandbox.pool import LocalPool, fitting_workers

__all__ = ["Job", "LocalPool", "fitting_workers", "run_all"]
