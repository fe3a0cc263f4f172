"""Training in a thread: the same run, and an interruption that keeps what was trained."""

import asyncio

import pytest
from small_run import settings

from mle_rl import MleRlError
from mle_rl.rewards import RewardWeights
from mle_rl.rollout.ledger import Ledger
from mle_rl.training.background import train_in_thread
from mle_rl.training.run import Controls


def test_an_interrupted_cell_ends_after_its_batch_and_goes_on_when_run_again(
    tmp_path, policy, pool
):
    config = settings(tmp_path / "run")
    controls = Controls(config.rewards)

    async def interrupted():
        began = asyncio.Event()
        loop = asyncio.get_running_loop()
        cell = asyncio.create_task(
            train_in_thread(
                config,
                controls=controls,
                policy=policy,
                pool=pool,
                on_step=lambda row: loop.call_soon_threadsafe(began.set),
            )
        )
        await began.wait()
        cell.cancel()  # what the kernel does with a cell that awaits
        await cell

    with pytest.raises(MleRlError, match=r"interrupted after step [1-3];"):
        asyncio.run(interrupted())
    again = asyncio.run(train_in_thread(config, controls=controls, policy=policy, pool=pool))
    assert len(again.history) == config.steps
    assert again.history.step.tolist() == [1, 2, 3, 4]
    with_ledger = Ledger(tmp_path / "run/rollouts.sqlite")
    assert with_ledger.counts().conserved
    assert with_ledger.counts().trained == config.steps * config.batch_size
    with_ledger.close()


def test_a_mistake_is_the_sentence_that_train_gives(tmp_path, policy, pool):
    config = settings(tmp_path / "run")
    (tmp_path / "run").write_text("a file")
    controls = Controls(RewardWeights())
    with pytest.raises(MleRlError, match="cannot be used"):
        asyncio.run(train_in_thread(config, controls=controls, policy=policy, pool=pool))
