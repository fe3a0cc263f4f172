"""Policies: a language model, its tokenizer, and the style of prompt that it reads.

``tiny`` is shipped with the package and trained from scratch by notebook 90. ``smollm2-135m`` is
there after ``make smollm2``. Any other name is taken as a folder or hub id of a chat model that
transformers can load.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from mle_rl.agent import smollm2
from mle_rl.agent.archive import Solution
from mle_rl.agent.prompts import PAD, chat_messages, parse_completion, task_shape, tiny_prompt
from mle_rl.errors import MleRlError, first_line
from mle_rl.records import Program, PromptKind
from mle_rl.tasks.task import Task

WEIGHTS = Path(__file__).parent / "weights"


@dataclass(frozen=True)
class Policy:
    """A model that writes programs.

    Attributes:
        name: What it was loaded as.
        model: A transformers causal language model.
        tokenizer: Its tokenizer; padding and end-of-text are two different tokens.
        style: The form of its prompts.
        max_completion_length: Tokens after which a completion is cut off.
    """

    name: str
    model: Any
    tokenizer: Any
    style: Literal["tiny", "chat"]
    max_completion_length: int

    def prompt_ids(
        self, task: Task, kind: PromptKind, earlier: Solution | None = None
    ) -> tuple[int, ...]:
        """Token ids of a prompt for ``task``.

        Raises:
            ValueError: An improve prompt without a solution, or a scratch prompt with one.
        """
        if (kind == "improve") != (earlier is not None):
            raise ValueError("An improve prompt shows an earlier solution, a scratch prompt none.")
        if self.style == "tiny":
            text = tiny_prompt(task_shape(task), earlier)
            return tuple(self.tokenizer.encode(text, add_special_tokens=False))
        return tuple(
            self.tokenizer.apply_chat_template(
                chat_messages(task, earlier),
                add_generation_prompt=True,
                tokenize=True,
                return_dict=False,
            )
        )

    def digest(self) -> str:
        """SHA-256 of the names and 32-bit values of all weights, hexadecimal."""
        digest = hashlib.sha256()
        for name, tensor in sorted(self.model.state_dict().items()):
            digest.update(name.encode())
            digest.update(tensor.detach().cpu().float().numpy().tobytes())
        return digest.hexdigest()

    def parse(self, completion_ids: tuple[int, ...]) -> Program | None:
        """The program in a completion, or None when there is none or it was cut off before its
        end."""
        if not completion_ids or completion_ids[-1] != self.tokenizer.eos_token_id:
            return None
        return parse_completion(self.tokenizer.decode(completion_ids, skip_special_tokens=True))


def policy_names() -> tuple[str, ...]:
    """Names of the policies that need no folder and no hub."""
    shipped = [path.name for path in WEIGHTS.iterdir() if (path / "config.json").is_file()]
    return tuple(sorted([*shipped, smollm2.NAME]))


def load_policy(name: str | Path = "tiny") -> Policy:
    """Load a policy on the CPU, in 32-bit precision for one that has a name.

    Args:
        name: One of `policy_names`, a folder, or a hub id of the form ``owner/model``.

    Raises:
        MleRlError: Nothing of that name exists or is installed, or its files cannot be read.
    """
    folder = Path(name)
    if str(name) == smollm2.NAME:
        policy = _load(smollm2.NAME, smollm2.model_folder(), "chat", dtype="float32")
        # What gets longer has lost its thread, and the whole batch waits for it.
        return replace(policy, max_completion_length=512)
    if str(name) in policy_names():
        return _load(str(name), WEIGHTS / str(name), "tiny")
    if folder.is_dir():
        return _load(str(name), folder, _style_of(folder))
    if str(name).count("/") == 1 and not str(name).startswith((".", "/", "~")):
        return _load(str(name), str(name), "chat")
    known = ", ".join(policy_names())
    raise MleRlError(
        f"There is no policy {str(name)!r}. Known: {known}; or give a folder, or a hub id such as "
        "owner/model."
    )


def _style_of(folder: Path) -> Literal["tiny", "chat"]:
    file = folder / "tokenizer.json"
    return "tiny" if file.is_file() and PAD in file.read_text(errors="replace")[:4000] else "chat"


def _load(
    name: str, source: Path | str, style: Literal["tiny", "chat"], dtype: str = "auto"
) -> Policy:
    # transformers takes seconds to import; keep it out of everything that only lists names.
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    from mle_rl.agent.tokenizer import load_tokenizer

    logging.disable_progress_bar()  # a bar for a tenth of a second, in every notebook's output
    try:
        if style == "tiny":
            tokenizer = load_tokenizer(Path(source))
            model = AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32)
        else:
            tokenizer = AutoTokenizer.from_pretrained(source, padding_side="left")
            model = AutoModelForCausalLM.from_pretrained(source, dtype=dtype)
    except (
        Exception
    ) as problem:  # the loaders raise a dozen unrelated types for a damaged or absent file
        raise MleRlError(
            f"The policy {name!r} cannot be loaded ({first_line(problem)}). If its files are "
            "damaged, restore them (git checkout, or notebook 90 for the shipped one); if it is on "
            "a model hub, check name and network."
        ) from None
    if style == "tiny":
        return Policy(name, model, tokenizer, "tiny", max_completion_length=320)
    return Policy(name, model, tokenizer, "chat", max_completion_length=1024)
