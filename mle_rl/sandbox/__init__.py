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
- What pipes and Unix sockets hold in the kernel is nobody's memory: about 0.2 MiB for each of the
  at most 512 descriptors of a process.
- Data handed to programs by hard links inside the public folder: what is there is public.
- With ``isolated`` through Landlock alone: names and sizes of files can be seen, not contents.
- Without namespaces, daemons of a program outlive it if somebody kills the launcher itself.
- With ``bubblewrap`` or ``limits`` started by root, programs keep root's number, without its
  powers.

How a program can fail
----------------------
``ok`` is a program that ended by itself with exit status 0. Every other end has one status and one
sentence, `Execution.reason`; here with the default limits, and in brackets what leads there.

=============  ====================================================================================
error          The program ended with exit status 1.
               [an exception that it did not catch, text that is no Python, ``sys.exit(1)``]
error          The program crashed: the kernel sent it SIGSEGV.
               [a fault in compiled code, ``os.abort``, an alarm, a file beyond its size limit]
timeout        The program did not end within 10 s.
               [wall clock; duration_s is the limit]
out_of_memory  The program used more than 2048 MiB of memory.
               [all its processes, and its scratch folder where that lies in memory]
killed         The program had more than 32 processes and threads.
               [fork bombs; the kernel may refuse further ones first, which raises in the program]
killed         The program's files took more than 64 MiB, or were far too many.
               [where the quota is watched; where the kernel enforces it, writing raises]
killed         The program was killed by a SIGKILL of its own or of the machine.
killed         The sandbox was killed twice while the program ran.
               [duration_s is 0, and nothing is known of the program]
rejected       The program is not text: it holds half a surrogate pair.
rejected       The program is longer than 1048576 bytes.
rejected       The completion holds no complete program.
=============  ====================================================================================

A program that ends well can still leave no valid submission. `Execution.submission_problem` says
why the file is not read, and what the grader finds wrong in one that is read stands in
`Outcome.problem`:

=============  ====================================================================================
link           submission.csv is a link, not a file.
folder         submission.csv is a folder, not a file.
special        submission.csv is a pipe, socket or device, not a file.
names          submission.csv is a hard link: it has 2 names.
size           submission.csv is larger than 64 MiB.
closed         submission.csv cannot be read: Permission denied.
=============  ====================================================================================

A failure of the sandbox itself is no status: it raises MleRlError.
"""

from mle_rl.sandbox.batch import run_all
from mle_rl.sandbox.capabilities import Report, check
from mle_rl.sandbox.job import Job
from mle_rl.sandbox.pool import LocalPool, fitting_workers

__all__ = ["Job", "LocalPool", "Report", "check", "fitting_workers", "run_all"]
