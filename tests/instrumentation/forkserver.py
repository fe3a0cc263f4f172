"""A warm interpreter that forks per program: how the tests run programs, plain and instrumented.

Runs as a process of its own (``python forkserver.py``), reads one JSON request per line and answers
with one line. It imports the libraries that programs use once; each program runs in a fork, in a
working folder of its own, as ``python program.py`` would, with stdout and stderr in files. Markers
go to a third file. No isolation: the programs are the tests' own.
"""

import gc
import json
import os
import signal
import sys
import types

import numpy
import pandas
import scipy.stats
import sklearn.ensemble
import sklearn.linear_model
import sklearn.model_selection
import sklearn.pipeline
import statsmodels.formula.api
import torch

from mle_rl.instrumentation import Insertion, weave

torch.set_num_threads(1)
# The first optimiser imports a good deal more of torch: here, once, and not in every program.
_parameter = torch.nn.Parameter(torch.zeros(1))
_parameter.sum().backward()
torch.optim.Adam([_parameter]).step()
_LOADED = (numpy, pandas, scipy, sklearn, statsmodels, torch)
_TIME_LIMIT_S = 60


def run_program(request: dict) -> None:
    """In the fork: become the program, then end as the interpreter would."""
    os.chdir(request["folder"])
    for fd, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(request[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), fd)
    sys.stdout = sys.__stdout__ = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    marks = os.open(request["marks"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    numpy.random.seed(0)  # noqa: NPY002
    sys.path[:] = ["", *request["paths"], *(p for p in sys.path[1:] if p)]
    sys.argv[:] = ["program.py"]
    sys.path_importer_cache.clear()

    def mark(stage: str, value: float | None) -> None:
        os.write(marks, (json.dumps([stage, value]) + "\n").encode())

    main = types.ModuleType("__main__")
    main.__dict__.update(__file__="program.py", __builtins__=__builtins__)
    sys.modules["__main__"] = main
    with open("program.py", encoding=request["encoding"], newline="") as file:
        code = file.read()
    insertions = [Insertion.from_json(fields) for fields in request["insertions"]]
    status = 0
    try:
        woven = weave(code, insertions, "program.py", mark)
    except SyntaxError as error:
        sys.excepthook(SyntaxError, error, None)
        os._exit(1)
    try:
        exec(woven, main.__dict__)
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
        if status and not isinstance(end.code, int):
            print(end.code, file=sys.stderr)
    except BaseException as error:
        status = 1
        sys.excepthook(type(error), error, error.__traceback__.tb_next)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (ValueError, OSError):
            status = status or 120
    os._exit(status)


def serve() -> None:
    gc.collect()
    gc.freeze()  # collections in the forks leave the shared memory alone
    print("ready", flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        pid = os.fork()
        if pid == 0:
            try:
                signal.alarm(_TIME_LIMIT_S)
                run_program(request)
            finally:
                os._exit(99)
        _, status = os.waitpid(pid, 0)
        print(json.dumps(os.waitstatus_to_exitcode(status)), flush=True)


if __name__ == "__main__":
    serve()
