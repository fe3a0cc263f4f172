"""The error a person can cause: one sentence on what was wrong and one on what to do."""


class MleRlError(Exception):
    """Raised for every mistake that a user can make and mend.

    The message is complete by itself: what was wrong, and what to do. Command line and notebooks
    show it without a traceback; anything else that escapes is a bug and keeps its traceback.
    """

    def _render_traceback_(self) -> list[str]:
        """What IPython shows in place of a traceback; the cell fails all the same."""
        return [f"{type(self).__name__}: {self}"]


def unknown_name(kind: str, name: str, known) -> MleRlError:
    """The error for a name that does not exist; lists the names that do.

    Args:
        kind: What was looked for, for example ``"task"``.
        name: The name that was asked for.
        known: The names that exist.
    """
    return MleRlError(f"There is no {kind} {name!r}. Known: {', '.join(sorted(known))}.")


def first_line(error: BaseException) -> str:
    """What another library's error says first, for a sentence of ours; its type if it is silent."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].strip()[:160]
