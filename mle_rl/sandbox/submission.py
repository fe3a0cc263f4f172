"""Reading what a program left as its submission, without trusting any of it."""

from __future__ import annotations

import os
import stat

FILE_NAME = "submission.csv"
MAX_MB = 64
PROBLEMS = {
    "link": "{name} is a link, not a file.",
    "folder": "{name} is a folder, not a file.",
    "special": "{name} is a pipe, socket or device, not a file.",
    "names": "{name} is a hard link: it has {names} names.",
    "size": "{name} is larger than {max_mb} MiB.",
    "closed": "{name} cannot be read: {why}.",
}
"""Why a file that was left is not read. What is read and wrong in itself, the grader says."""


def read(folder_fd: int, name: str = FILE_NAME) -> tuple[bytes | None, str | None]:
    """Reads a submission by its folder's descriptor, after every process of the program has ended.

    Links are not followed, nothing that could block is opened for long, and only a plain file with
    one name and a sane size is read. What is in it is the grader's business.

    Returns:
        The bytes and None; or None and why a submission that exists cannot be read; or None twice
        when there is none.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
    try:
        before = os.lstat(name, dir_fd=folder_fd)
    except FileNotFoundError:
        return None, None
    except OSError as error:
        return None, _sentence("closed", name, why=error.strerror)
    if problem := _problem(name, before):
        return None, problem
    try:
        fd = os.open(name, flags, dir_fd=folder_fd)
    except OSError as error:
        return None, _sentence("closed", name, why=error.strerror)
    with os.fdopen(fd, "rb") as file:
        if problem := _problem(name, os.fstat(fd)):
            return None, problem
        data = file.read((MAX_MB << 20) + 1)
    if len(data) > MAX_MB << 20:
        return None, _sentence("size", name)
    return data, None


def _problem(name: str, status: os.stat_result) -> str | None:
    if stat.S_ISLNK(status.st_mode):
        return _sentence("link", name)
    if stat.S_ISDIR(status.st_mode):
        return _sentence("folder", name)
    if not stat.S_ISREG(status.st_mode):
        return _sentence("special", name)
    if status.st_nlink != 1:
        return _sentence("names", name, names=status.st_nlink)
    if status.st_size > MAX_MB << 20:
        return _sentence("size", name)
    return None


def _sentence(problem: str, name: str, **fields: object) -> str:
    return PROBLEMS[problem].format(name=name, max_mb=MAX_MB, **fields)
