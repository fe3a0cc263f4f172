"""Running programs that a language model wrote: isolated, limited, measured.

Every program is hostile: training searches for whatever raises the reward, and reading the answers
is easier than learning. ``LocalPool`` keeps one warm server per worker, which has imported numpy,
pandas, scipy and scikit-learn, and forks it for every program::

    with LocalPool(2) as pool:
        execution = pool.run(Job(code, task.public_dir))

`mle_rl.sandbox.ray_pool.RayPool` does the same on the nodes of a Ray cluster.

The program's process is confined before its first line runs. It sees a folder of its own (working
folder, HOME, temporary files, one quota), the task's public folder as ``./input``, read-only, and
the libraries. What it leaves is read after all its processes are dead, by a process that it could
not reach; its status comes from the kernel, not from its interpreter.

Tiers
-----
``isolated`` (default)
    New user, mount, PID, network and IPC namespaces, Landlock, a seccomp filter, no capabilities,
    no_new_privs, resource limits. Needs no root. Where namespaces are forbidden, Landlock version 6
    (Linux 6.12) and the filter do alone: see `LandlockJail` for what programs then miss.
``bubblewrap``
    The same, with namespaces made by ``bwrap``, for machines that let it and not everybody.
``limits``
    Resource limits only. A program can read and signal whatever this user can. Never chosen for
    you: a tier that is not to be had is refused.

Covered
-------
Answers, and any file of the machine but libraries; other processes' memory, environment, signals;
the network, loopback, Unix sockets, the hypervisor's too; changing the data or the libraries;
wall-clock time, memory (also what no process maps), processes, threads, open files, size and
number of files, output; daemons; results that are links, devices, pipes, folders; forged markers
and patched clocks; traces left for the next program. tests/fixtures/attacks holds the attempts.

Not covered
-----------
- A hole in the kernel. Whoever runs programs of a capable adversary should add a virtual machine.
- What libraries say of themselves: a program can read the documentation of the packages that it may
  import, and tasks must not be made from those. Packages that the tasks are made from are hidden.
- Side channels: load, timing, caches, names of mounted folders in /proc/self/mountinfo.
- Memory and processes are looked at every 20 ms; a program can exceed a limit for that long. The
  kernel bounds processes too: exactly with namespaces, far above the limit without. Root is bound
  by no such number: programs that keep it (below) are ended by the watch alone, which runs at
  real-time priority then. A container without that right should have a limit of its own.
- Data handed to programs by hard links inside the public folder: what is there is public.
- With ``isolated`` through Landlock alone: names and sizes of files can be seen, not contents.
- With ``bubblewrap`` or ``limits`` started by root, programs keep root's number, without its
  powers.

What a status means
-------------------
==============  ====================================================================
ok              The program ended by itself, without an error.
error           It raised, exited with a status, or crashed (signal other than SIGKILL).
timeout         It was killed at its wall-clock limit; duration_s is the limit.
out_of_memory   It was killed because it used more memory than it may.
killed          It was killed for too many processes or files, by a SIGKILL of its own or of
                the machine; or the sandbox was killed twice under it (duration_s is 0).
rejected        It was not started: it is not text, or longer than 1 MiB.
==============  ====================================================================

A failure of the sandbox itself is no status: it raises MleRlError.
"""

from mle_rl.sandbox.batch import run_all
from mle_rl.sandbox.capabilities import Report, check
from mle_rl.sandbox.job import Job
from mle_rl.sandbox.pool import LocalPool, fitting_workers

__all__ = ["Job", "LocalPool", "Report", "check", "fitting_workers", "run_all"]
