"""The settings of a run, turned into the parts that it is put together from."""

from __future__ import annotations

from functools import partial

import numpy as np

from mle_rl.agent import Archive, Policy, PromptSource
from mle_rl.rollout.assignment import Assignment
from mle_rl.rollout.environment import Environment, Pool
from mle_rl.rollout.executions import ExecutionStore
from mle_rl.rollout.sampling import SamplingSettings
from mle_rl.tasks import Task
from mle_rl.training.config import TrainConfig


def assign(
    task: Task,
    policy: Policy,
    pool: Pool,
    config: TrainConfig,
    executions: ExecutionStore | None = None,
    number: int = 0,
) -> Assignment:
    """A task with its environment and prompts, as a run needs it.

    Args:
        executions: The opened file ``config.executions``.
        number: Place of the task in the run; its prompts draw from random numbers of their own.
    """
    return Assignment(
        Environment(task, pool, config.limits, executions=executions, replay=config.replay),
        PromptSource(
            task.id,
            partial(policy.prompt_ids, task),
            Archive(),
            improve_share=config.improve_share,
            rng=np.random.default_rng([config.seed, number]),
        ),
    )


def sampling_settings(
    policy: Policy, temperature: float = 1.0, max_new_tokens: int | None = None
) -> SamplingSettings:
    """How a policy is sampled; completions of its own length unless another is given."""
    tokenizer = policy.tokenizer
    return SamplingSettings(
        max_new_tokens=max_new_tokens or policy.max_completion_length,
        eos_ids=(tokenizer.eos_token_id,),
        # Some chat models have no padding token. Padding is masked or cut off, so any id will do.
        pad_id=tokenizer.eos_token_id if tokenizer.pad_token_id is None else tokenizer.pad_token_id,
        temperature=temperature,
    )


def grpo_config(config: TrainConfig, sampling: SamplingSettings):
    """The settings in TRL's words."""
    import torch
    from trl import GRPOConfig

    cpu = not torch.cuda.is_available() if config.use_cpu is None else config.use_cpu
    truncated = config.ratio == "truncate"
    return GRPOConfig(
        output_dir=str(config.run_dir),
        per_device_train_batch_size=config.batch_size // config.micro_batches,
        gradient_accumulation_steps=config.micro_batches,
        # TRL's groups are by position; the whole batch is one, and the trainer regroups by label.
        num_generations=config.batch_size,
        num_iterations=config.epochs,
        max_steps=config.steps * config.epochs,
        max_completion_length=sampling.max_new_tokens,
        temperature=sampling.temperature,
        learning_rate=config.learning_rate,
        lr_scheduler_type="constant_with_warmup",
        warmup_steps=config.warmup_steps * config.epochs,
        max_grad_norm=config.max_grad_norm,
        loss_type="cispo" if truncated else config.loss_type,
        epsilon=config.clip,
        epsilon_high=config.ratio_cap if truncated else config.clip,
        scale_rewards=config.scale_rewards,
        beta=config.kl,
        entropy_coef=config.entropy,
        seed=config.seed,
        use_cpu=cpu,
        bf16=not cpu,
        activation_checkpointing=not cpu,
        logging_steps=config.epochs,
        save_strategy="steps",
        save_steps=config.checkpoint_every * config.epochs,
        save_total_limit=2,
        report_to="none",
        disable_tqdm=True,
        dataloader_pin_memory=False,
    )
