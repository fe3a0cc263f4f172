"""The language-model inserter: a frozen model says where to print, the verifier says what is taken.

The paper (section 2) gives this task to a second, static copy of the small model, apart from the
policy that is trained, for the policy would learn to print the words itself. Two formats:
``rewrite``, the whole program with print lines in it, as in the paper, and ``anchors``, one line
per place (`anchors`), which costs a tenth of the tokens. Either way only places come out of it; a
refused answer falls back to the syntax-tree inserter, and the report says how many were refused and
why.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from mle_rl.errors import MleRlError, unknown_name
from mle_rl.instrumentation.anchors import WORDS, Reading, numbered, read_anchors
from mle_rl.instrumentation.dataflow import source_lines
from mle_rl.instrumentation.insertions import Instrumented
from mle_rl.instrumentation.rendering import print_line
from mle_rl.instrumentation.syntax import insert_by_syntax, read_sites
from mle_rl.instrumentation.verifier import verify
from mle_rl.records import STAGES

Format = Literal["rewrite", "anchors"]

_WHEN = (
    "right after the last import of the first imports",
    "right after a data file was read",
    "right after a model was created",
    "right after a loss on training data was computed",
    "right after a model was fitted",
    "right after a score on validation data was computed",
    "right after the test data was predicted",
)


def rewrite_prompt(code: str) -> str:
    """Asks a chat model for the whole program with print lines (format ``rewrite``)."""
    wanted = "\n".join(
        f"- {when}: {print_line(stage, 'x')}" for stage, when in zip(STAGES, _WHEN, strict=True)
    )
    return (
        "Insert print statements into the Python program below, wherever they apply:\n"
        f"{wanted}\n"
        "where x is a variable that holds the number; leave it out if there is none. Insert "
        "nothing else, and change, move or remove nothing. Answer with the whole program in a "
        "```python fence.\n\n"
        f"```python\n{code}```\n"
    )


def anchors_prompt(code: str) -> str:
    """Asks a chat model for one line per place (format ``anchors``)."""
    wanted = "\n".join(f"- {word}: {when}" for word, when in zip(WORDS, _WHEN, strict=True))
    return (
        "Below is a Python program with numbered lines. Say after which statements each of these "
        f"events has just happened:\n{wanted}\n"
        "Answer with one line per event, the number of the line on which the statement starts "
        "and the word, for example:\n3 packages\n5 data\n"
        "Answer `none` if there is no such event.\n\n"
        f"{numbered(code)}"
    )


@dataclass
class InserterReport:
    """What became of the programs that an inserter was given.

    Attributes:
        programs: All of them.
        not_shown: Those that the model never saw, since they do not parse or are not trusted.
        cached: Those whose text had been seen before.
        accepted: Answers that were taken.
        refused: Answers that were not, by reason.
        proposed, supported: Places named in accepted answers, by stage, and those among them in
            which the syntax tree shows the stage.
    """

    programs: int = 0
    not_shown: int = 0
    cached: int = 0
    accepted: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    proposed: Counter[str] = field(default_factory=Counter)
    supported: Counter[str] = field(default_factory=Counter)

    @property
    def refused_share(self) -> float:
        """Share of the model's answers that were refused; 0 when it gave none."""
        refused = self.refused.total()
        return refused / (refused + self.accepted) if refused + self.accepted else 0.0

    def __str__(self) -> str:
        why = ", ".join(f"{count} {reason}" for reason, count in self.refused.most_common())
        return (
            f"{self.programs} programs, {self.not_shown} not shown to the model, {self.cached} "
            f"from the cache; {self.accepted} answers accepted, {self.refused_share:.1%} refused"
            + (f" ({why})" if why else "")
        )


class LanguageModelInserter:
    """Instruments programs by asking a frozen language model, in batches.

    Args:
        generate: Prompts -> one answer each, in order; greedy decoding is right.
        format: ``anchors`` or ``rewrite``.
        prompt: Program -> prompt; by default a prompt for chat models.
        evidence: See `verify`; only the ``rewrite`` format can be taken at its word.
        checksum: Gives a fingerprint of the model's weights, see `weights_checksum`; taken now, and
            compared by `check_frozen`.
        cache: Answers by the SHA-256 of the program's text; a dictionary of its own by default.
    """

    def __init__(
        self,
        generate: Callable[[list[str]], list[str]],
        *,
        format: Format = "anchors",
        prompt: Callable[[str], str] | None = None,
        evidence: bool = True,
        checksum: Callable[[], str] | None = None,
        cache: MutableMapping[str, str] | None = None,
    ) -> None:
        prompts = {"anchors": anchors_prompt, "rewrite": rewrite_prompt}
        if format not in prompts:
            raise unknown_name("inserter format", format, prompts)
        if not evidence and format != "rewrite":
            raise MleRlError("Only format='rewrite' can be taken at its word (evidence=False).")
        self.format, self.evidence = format, evidence
        self.report = InserterReport()
        self._generate = generate
        self._prompt = prompt or prompts[format]
        self._cache: MutableMapping[str, str] = {} if cache is None else cache
        self._checksum = checksum
        self._checksum_before = checksum() if checksum else None

    def insert(self, codes: Sequence[str]) -> list[Instrumented]:
        """Instruments programs; those whose answer is refused as the syntax-tree inserter would."""
        shown = {code for code in codes if read_sites(code)[1] is None}
        new = [c for c in dict.fromkeys(codes) if c in shown and _key(c) not in self._cache]
        self.report.cached += sum(code in shown for code in codes) - len(new)
        if new:
            answers = self._generate([self._prompt(code) for code in new])
            if len(answers) != len(new):
                raise MleRlError(
                    f"The inserter's generate gave {len(answers)} answers to {len(new)} prompts."
                )
            self._cache.update(zip(map(_key, new), answers, strict=True))
        return [self._take(code, code in shown) for code in codes]

    def _take(self, code: str, shown: bool) -> Instrumented:
        report = self.report
        report.programs += 1
        fallback = insert_by_syntax(code)
        if not shown:
            report.not_shown += 1
            return fallback
        reading = self._read(code, self._cache[_key(code)])
        if reading.refused is not None:
            report.refused[reading.refused] += 1
            return Instrumented(code, fallback.insertions, "syntax", reading.refused)
        report.accepted += 1
        supported = {insertion.stage for insertion in reading.insertions}
        report.supported.update(supported)
        report.proposed.update(supported | set(reading.unsupported))
        return Instrumented(code, reading.insertions, "language_model")

    def _read(self, code: str, answer: str) -> Reading:
        if self.format == "rewrite":
            return verify(code, strip_fence(answer), evidence=self.evidence)
        return read_anchors(read_sites(code)[0], answer, len(source_lines(code)))

    def check_frozen(self) -> None:
        """Compares the model's weights with what they were at the start.

        Raises:
            MleRlError: They changed, or no ``checksum`` was given to know it by.
        """
        if self._checksum is None:
            raise MleRlError("Pass checksum= to LanguageModelInserter to check its weights.")
        if self._checksum() != self._checksum_before:
            raise MleRlError(
                "The inserter's weights changed. Give it a copy of the policy's starting weights, "
                "not the policy that is trained."
            )


def agreement(
    codes: Sequence[str], instrumented: Sequence[Instrumented], report: InserterReport
) -> list[dict[str, Any]]:
    """How a language model's places compare with the syntax tree's, stage by stage.

    Returns: One row per stage: ``programs`` in which the syntax tree shows it, ``recall`` (share of
        these in which the model's accepted answer has it too) and ``precision`` (share of accepted
        answers naming it in which the tree supports it); None where there is nothing to divide by.
    """
    rows = []
    for stage in STAGES:
        shown = [stage in insert_by_syntax(code).stages for code in codes]
        found = [i.source == "language_model" and stage in i.stages for i in instrumented]
        both = sum(s and f for s, f in zip(shown, found, strict=True))
        proposed = report.proposed[stage]
        rows.append(
            {
                "stage": stage,
                "programs": sum(shown),
                "recall": both / sum(shown) if any(shown) else None,
                "precision": report.supported[stage] / proposed if proposed else None,
            }
        )
    return rows


def strip_fence(answer: str) -> str:
    """The program in a chat model's answer: inside the first code fence, if there is one."""
    _, fence, rest = answer.partition("```")
    if not fence:
        return answer
    first_line, _, body = rest.partition("\n")
    body = body if first_line.strip() in ("", "python", "py", "python3") else rest
    return body.partition("```")[0]


def weights_checksum(tensors: Mapping[str, Any]) -> str:
    """A fingerprint of a model's weights, for example of ``model.state_dict()``.

    Args:
        tensors: Torch tensors by name; the order does not matter.
    """
    import torch

    digest = hashlib.sha256()
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def _key(code: str) -> str:
    return hashlib.sha256(code.encode("utf-8", "surrogatepass")).hexdigest()
