"""The offline suite: competitions built from what installed packages ship."""

from mle_rl.tasks.suite import doctor_visits, library_docstrings, photo_patches

COMPETITIONS = {
    c.id: c
    for c in (
        library_docstrings.COMPETITION,
        photo_patches.COMPETITION,
        doctor_visits.COMPETITION,
    )
}
