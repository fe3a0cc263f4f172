"""Running programs that a language model wrote: isolated, limited, measured."""

from mle_rl.sandbox.job import Job
from mle_rl.sandbox.pool import LocalPool

__all__ = ["Job", "LocalPool"]
