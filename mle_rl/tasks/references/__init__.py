"""Reference programs: what people hand in, from naive to strong, about thirty per competition."""

from mle_rl.errors import MleRlError
from mle_rl.records import Program
from mle_rl.tasks.references import (
    doctor_visits,
    function_length,
    handwritten_digits,
    library_docstrings,
    photo_patches,
    raising_functions,
    terrain_height,
)
from mle_rl.tasks.references.reference import Reference
from mle_rl.tasks.task import Task

REFERENCES: dict[str, tuple[Reference, ...]] = {
    "library-docstrings": library_docstrings.REFERENCES,
    "photo-patches": photo_patches.REFERENCES,
    "doctor-visits": doctor_visits.REFERENCES,
    "function-length": function_length.REFERENCES,
    "terrain-height": terrain_height.REFERENCES,
    "raising-functions": raising_functions.REFERENCES,
    "handwritten-digits": handwritten_digits.REFERENCES,
}


def references(task: Task) -> tuple[Reference, ...]:
    """The reference programs of a competition of the offline suite, with their names.

    Raises:
        MleRlError: For a competition that has none.
    """
    if task.id not in REFERENCES:
        raise MleRlError(f"There are no reference programs for {task.id}.")
    return REFERENCES[task.id]


def reference_programs(task: Task) -> list[Program]:
    """The reference programs of a competition, without their names."""
    return [reference.program for reference in references(task)]
