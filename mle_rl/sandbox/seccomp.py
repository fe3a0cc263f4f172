"""A seccomp filter: what the kernel offers beside files, memory and processes is closed.

The filter is a list of what is refused. An allow-list would be shorter to argue for, but scientific
libraries use most of the common calls, and a refused honest program is a wrong measurement. What a
list of refusals has to fear is the call that it does not know: numbers above those of Linux 5.17
answer ENOSYS, as an older kernel would, so nothing newer is reachable.

Refused: sockets of every family but Unix; mounting, namespaces, chroot; ptrace and reading another
process's memory; keyrings, BPF, perf, userfaultfd, io_uring; clocks, modules, reboot; shared memory
that no file system accounts for (memfd, System V, shared anonymous maps); message queues; a wider
CPU set; terminals' input queue.
"""

from __future__ import annotations

import ctypes
import errno
import socket
import struct

from mle_rl.sandbox.syscalls import MACHINE, syscall

_LOAD, _JUMP_EQUAL, _JUMP_GREATER = 0x20, 0x15, 0x25
_AND, _RETURN = 0x54, 0x06
_ALLOW, _ERRNO, _KILL_PROCESS = 0x7FFF0000, 0x00050000, 0x80000000
_SET_MODE_FILTER, _FLAG_TSYNC = 1, 1
_AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_NEWEST_KNOWN = 450  # set_mempolicy_home_node, Linux 5.17; no later call is needed by anything

# (x86-64, arm64); None where the architecture has no such call.
_REFUSED = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "process_madvise": (440, 440),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "unshare": (272, 97),
    "setns": (308, 268),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "semget": (64, 190),
    "msgget": (68, 186),
    "mq_open": (240, 180),
    "sched_setaffinity": (203, 122),
    "sched_setscheduler": (144, 119),
    "sched_setattr": (314, 274),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "syslog": (103, 116),
    "acct": (163, 89),
    "reboot": (169, 142),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "personality": (135, 92),
    "vhangup": (153, 58),
    "lookup_dcookie": (212, 18),
    "move_pages": (279, 239),
    "migrate_pages": (256, 238),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
    "uselib": (134, None),
    "ustat": (136, None),
    "sysfs": (139, None),
    "_sysctl": (156, None),
    "nfsservctl": (180, 42),
}
# glibc falls back to the older call when these answer ENOSYS; clone3's flags cannot be read here.
_UNKNOWN_TO_THE_PROGRAM = {"clone3": (435, 435)}
# What Landlock leaves to the owner of a file. An error would stop programs that copy files, so
# these claim success and do nothing where the host's files are in sight.
_PRETENDED = {
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
}
_NEW_NAMESPACES = 0x7E020000  # every CLONE_NEW* flag that clone takes
_MAP_SHARED_ANONYMOUS = 0x21
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_CHECKED = {"socket": (41, 198), "clone": (56, 220), "mmap": (9, 222), "ioctl": (16, 29)}


def supported() -> bool:
    """Whether this architecture is in the tables and the kernel takes filters."""
    if MACHINE not in _AUDIT_ARCH:
        return False
    action = ctypes.c_uint32(_ERRNO)
    try:
        syscall("seccomp", 2, 0, ctypes.byref(action))  # SECCOMP_GET_ACTION_AVAIL
    except OSError:
        return False
    return True


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)


def _refuse(code: int) -> bytes:
    return _op(_RETURN, _ERRNO | code)


def _argument(index: int) -> bytes:
    """Loads the low half of a call's argument; both architectures are little-endian."""
    return _op(_LOAD, 16 + 8 * index)


def _when(number: int, body: list[bytes]) -> list[bytes]:
    """Runs body, which must end in a return, for one call; the call's number is in A before."""
    return [_op(_JUMP_EQUAL, number, 0, len(body)), *body]


def program(own_view: bool = True) -> bytes:
    """The filter as BPF instructions for this machine.

    Args:
        own_view: Whether the program has a file system of its own. If the host's is restricted by
            Landlock alone, Unix sockets are refused too (connecting to a socket file is no file
            access to it), and changes of mode, owner, time and attributes have no effect.
    """
    column = 0 if MACHINE == "x86_64" else 1
    allow, eperm = _op(_RETURN, _ALLOW), _refuse(errno.EPERM)
    ops = [
        _op(_LOAD, 4),
        _op(_JUMP_EQUAL, _AUDIT_ARCH[MACHINE], 1, 0),
        _op(_RETURN, _KILL_PROCESS),
        _op(_LOAD, 0),
        # x32 numbers have bit 30 set and are refused by the same comparison.
        _op(_JUMP_GREATER, _NEWEST_KNOWN, 0, 1),
        _refuse(errno.ENOSYS),
    ]
    for numbers in _UNKNOWN_TO_THE_PROGRAM.values():
        ops += _when(numbers[column], [_refuse(errno.ENOSYS)])
    for numbers in _REFUSED.values():
        if numbers[column] is not None:
            ops += _when(numbers[column], [eperm])
    for numbers in () if own_view else _PRETENDED.values():
        if numbers[column] is not None:
            ops += _when(numbers[column], [_refuse(0)])
    number = {name: numbers[column] for name, numbers in _CHECKED.items()}
    family = [_op(_JUMP_EQUAL, socket.AF_UNIX, 0, 1), allow] if own_view else []
    ops += _when(number["socket"], [_argument(0), *family, _refuse(errno.EACCES)])
    masked = [_op(_AND, _NEW_NAMESPACES), _op(_JUMP_EQUAL, 0, 0, 1), allow, eperm]
    ops += _when(number["clone"], [_argument(0), *masked])
    both = [_op(_AND, _MAP_SHARED_ANONYMOUS), _op(_JUMP_EQUAL, _MAP_SHARED_ANONYMOUS, 1, 0)]
    ops += _when(number["mmap"], [_argument(3), *both, allow, eperm])
    typing = [_op(_JUMP_EQUAL, _TIOCSTI, 2, 0), _op(_JUMP_EQUAL, _TIOCLINUX, 1, 0)]
    ops += _when(number["ioctl"], [_argument(1), *typing, allow, eperm])
    return b"".join([*ops, allow])


def install(instructions: bytes) -> None:
    """Applies a filter to every thread of this process; needs no_new_privs to be set.

    Raises:
        OSError: The kernel refused.
    """
    buffer = ctypes.create_string_buffer(instructions, len(instructions))
    header = ctypes.create_string_buffer(
        struct.pack("HxxxxxxP", len(instructions) // 8, ctypes.addressof(buffer))
    )
    syscall("seccomp", _SET_MODE_FILTER, _FLAG_TSYNC, ctypes.byref(header))
