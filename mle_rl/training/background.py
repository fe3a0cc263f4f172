"""Train in a thread, so that a notebook's cell can wait for the run and still hear its sliders.

    result = await train_in_thread(config, controls=controls)

While a cell computes, the kernel delivers nothing that widgets send. While a cell *awaits*, it
does.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from mle_rl.errors import MleRlError
from mle_rl.training.config import TrainConfig
from mle_rl.training.run import Controls, TrainResult, train


async def train_in_thread(
    config: TrainConfig, *, controls: Controls, **options: Any
) -> TrainResult:
    """`mle_rl.training.run.train` in a thread of its own.

    An interruption of the cell ends the run after the batch in hand, with a checkpoint; a second
    one does not wait for that.

    Args:
        config: The settings.
        controls: What may be changed meanwhile.
        options: As for `train`.

    Raises:
        MleRlError: What `train` raises, or the run was interrupted and can be gone on with.
    """
    loop = asyncio.get_running_loop()
    run = loop.run_in_executor(None, partial(train, config, controls=controls, **options))
    try:
        return await asyncio.shield(run)
    except asyncio.CancelledError:
        print("Interrupted: the run ends after this batch.", flush=True)
        controls.stop = True
        done = len((await run).history)
        controls.stop = False  # the run may have ended before it was asked to
        raise MleRlError(
            f"Training was interrupted after step {done}; train again with the same settings to go "
            "on from there."
        ) from None
