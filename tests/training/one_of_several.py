"""One optimiser step of the trainer, in one process or as one of several.

    python one_of_several.py OUT

It trains on its share of eight fixed rollouts with plain gradient descent, and saves the weights
that its rows got and the parameters after the step. The launcher's variables say how many there
are.
"""

import os
import sys
from pathlib import Path

import torch
from datasets import Dataset
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
from trl import GRPOConfig

from mle_rl.training.trainer import DurationAwareGRPOTrainer
from mle_rl.training.weighting import DurationWeighting

COMPLETIONS = [[2 + i, 5 + 2 * i, 3, 7 + i, 1][i % 4 :] for i in range(8)]
COLUMNS = {
    "reward": [0.3, -1.0, 2.0, 0.0, 0.9, -10.0, 0.1, 1.4],
    "duration_s": [0.5, 1.0, 20.0, 2.5, 0.7, 0.4, 3.0, 11.0],
    # No group, and no task, is whole in the rows of one process.
    "group": ["a", "b", "a", "b", "b", "a", "b", "a"],
    "task": ["x", "y", "y", "y", "y", "x", "x", "x"],
}


def shared(rows):
    """Those of this process."""
    number, of = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    size = len(rows) // of
    return rows[number * size : (number + 1) * size]


def rollouts(prompts, trainer):
    columns = {name: shared(values) for name, values in COLUMNS.items()}
    completions = shared(COMPLETIONS)
    logprobs = [[-3.0] * len(ids) for ids in completions]
    ids = {"prompt_ids": [[2, 3]] * len(prompts), "completion_ids": completions}
    return {**ids, "logprobs": logprobs, **columns}


class Watched(DurationAwareGRPOTrainer):
    def _compute_loss(self, model, inputs):
        self.seen = {name: inputs[name] for name in ("duration_weights", "advantages")}
        return super()._compute_loss(model, inputs)


def llama():
    torch.manual_seed(0)
    settings = {"num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1}
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=24,
            hidden_size=8,
            intermediate_size=16,
            pad_token_id=0,
            bos_token_id=None,
            eos_token_id=1,
            initializer_range=0.5,
            **settings,
        )
    )


def tokenizer():
    words = {"<pad>": 0, "<end>": 1, **{f"w{i}": i for i in range(2, 24)}}
    core = Tokenizer(models.WordLevel(words, unk_token="w2"))
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return PreTrainedTokenizerFast(tokenizer_object=core, pad_token="<pad>", eos_token="<end>")


def main(out):
    processes = int(os.environ.get("WORLD_SIZE", 1))
    model = llama()
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    args = GRPOConfig(
        output_dir=str(out),
        per_device_train_batch_size=8 // processes,
        num_generations=8,
        max_completion_length=6,
        max_steps=1,
        max_grad_norm=0.0,
        epsilon=0.999999,  # nothing is clipped
        epsilon_high=1e6,
        save_strategy="no",
        report_to="none",
        use_cpu=True,
        bf16=False,
        activation_checkpointing=False,
        disable_tqdm=True,
    )
    trainer = Watched(
        model=model,
        reward_funcs=lambda reward, **_: reward,
        args=args,
        train_dataset=Dataset.from_dict({"prompt": ["w2 w3"] * 8}),
        processing_class=tokenizer(),
        rollout_func=rollouts,
        weighting=DurationWeighting("task_mean"),
        optimizers=(optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, lambda _: 1.0)),
    )
    assert trainer.accelerator.num_processes == processes
    trainer.train()
    trained = trainer.accelerator.unwrap_model(trainer.model)
    parameters = torch.cat([p.detach().flatten() for p in trained.parameters()])
    rank = trainer.accelerator.process_index
    torch.save({**trainer.seen, "parameters": parameters}, Path(out) / f"{processes}-{rank}.pt")


if __name__ == "__main__":
    main(*sys.argv[1:])
