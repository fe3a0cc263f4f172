"""The byte-pair encoding of the ``tiny`` policy.

Two departures from the usual recipe. Text is split at line ends only, not at spaces, so that
frequent pieces of boilerplate become one token and a program has about a hundred. Digits are never
merged, so that the policy writes numbers digit by digit and can write values that it has never
seen.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from mle_rl.agent.prompts import END, PAD, SPECIAL_TOKENS


def train_tokenizer(
    texts: Iterable[str], vocabulary: int, longest: int = 32
) -> PreTrainedTokenizerFast:
    """Learn the encoding from texts without special tokens.

    Args:
        vocabulary: Number of tokens, bytes and special tokens included.
        longest: Most characters in one token.
    """
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r"\n"), "merged_with_previous"),
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        max_token_length=longest,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return wrap(tokenizer)


def wrap(tokenizer: Tokenizer) -> PreTrainedTokenizerFast:
    """The same encoding in the form that transformers and TRL take; nothing is added to a text by
    itself."""
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=END,
        padding_side="left",
        clean_up_tokenization_spaces=False,
        model_input_names=["input_ids", "attention_mask"],
    )


def load_tokenizer(folder: Path) -> PreTrainedTokenizerFast:
    """Read ``tokenizer.json`` from a folder."""
    return wrap(Tokenizer.from_file(str(folder / "tokenizer.json")))
