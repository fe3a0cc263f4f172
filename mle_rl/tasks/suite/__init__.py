"""The offline suite: competitions built from what installed packages ship."""

from mle_rl.tasks.suite import (
    doctor_visits,
    function_length,
    handwritten_digits,
    library_docstrings,
    photo_patches,
    raising_functions,
    terrain_height,
)

COMPETITIONS = {
    c.id: c
    for c in (
        library_docstrings.COMPETITION,
        photo_patches.COMPETITION,
        doctor_visits.COMPETITION,
        function_length.COMPETITION,
        terrain_height.COMPETITION,
        raising_functions.COMPETITION,
        handwritten_digits.COMPETITION,
    )
}
"""By id, in the order in which they are listed."""
