"""Command line: ``python -m mle_rl tasks | check | headroom | compare | notebooks | outputs``.

A mistake of the user's becomes one sentence and exit code 2, Ctrl-C one sentence and 130;
anything else is a bug and keeps its traceback.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from mle_rl import __version__
from mle_rl.errors import MleRlError
from mle_rl.notebook import PROFILES, limit_threads, profile, results_folder

DESCRIPTION = "Tasks, sandbox and notebooks of the project, from the command line."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code."""
    options = _parser().parse_args(arguments)
    try:
        options.command(options)
    except MleRlError as error:
        print(f"mle_rl: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt as interrupt:
        print(f"\nmle_rl: {interrupt if interrupt.args else 'Interrupted.'}", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m mle_rl", description=DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"mle_rl {__version__}")
    commands = parser.add_subparsers(required=True, metavar="command")

    tasks = commands.add_parser("tasks", help="list the offline tasks; builds them on first use")
    tasks.set_defaults(command=_tasks)

    check = commands.add_parser("check", help="say what isolation this machine can enforce")
    check.set_defaults(command=_check)

    headroom = commands.add_parser(
        "headroom",
        help="record samples of the policy before training, and say what they leave to win",
    )
    headroom.set_defaults(command=_headroom)
    headroom.add_argument("--task", nargs="+", default=[], metavar="ID", help="default: all")
    headroom.add_argument("--samples", type=int, default=2000, help="per task; default: 2000")
    headroom.add_argument("--workers", type=int, default=2, help="programs at once; default: 2")
    headroom.add_argument("--policy", default="tiny", help="name or folder; default: tiny")
    headroom.add_argument(
        "--folder", type=Path, help="of the tables; default: results/full/headroom"
    )
    headroom.add_argument("--report", action="store_true", help="record nothing, only say")

    compare = commands.add_parser(
        "compare", help="RL against other searches in the same wall-clock time; can be resumed"
    )
    compare.set_defaults(command=_compare)
    compare.add_argument("--task", required=True, metavar="ID", help="id of the competition")
    compare.add_argument("--seconds", type=float, required=True, help="of each search")
    compare.add_argument("--seed", type=int, nargs="+", default=[0], help="default: 0")
    compare.add_argument(
        "--methods",
        nargs="+",
        default=[],
        metavar="NAME",
        help="of default, grammar, rl, smollm2, static, tree (default: these), evolution, "
        "rl-duration, rl-scratch, rl-penalty, rl-penalty-scratch",
    )
    compare.add_argument("--workers", type=int, default=2, help="programs at once; default: 2")
    compare.add_argument("--out", type=Path, help="folder; default: among the profile's results")
    compare.add_argument("--profile", choices=PROFILES, help="default: MLE_RL_PROFILE, else quick")

    notebooks = commands.add_parser("notebooks", help="execute the notebooks in order")
    notebooks.set_defaults(command=_notebooks)
    notebooks.add_argument(
        "--resume", action="store_true", help="leave out what is unchanged; smoke keeps nothing"
    )
    notebooks.add_argument(
        "-p",
        "--parameter",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="replace a value of the cell tagged 'parameters'; may be repeated",
    )
    outputs = commands.add_parser("outputs", help="put the outputs of a run into the notebooks")
    outputs.set_defaults(command=_outputs)
    for command, profiles in ((notebooks, PROFILES), (outputs, PROFILES[1:])):
        command.add_argument(
            "--profile", choices=profiles, help="default: MLE_RL_PROFILE, else quick"
        )
        command.add_argument(
            "--only", nargs="+", default=[], metavar="NN", help="numbers, or beginnings of names"
        )
    return parser


def _tasks(options: argparse.Namespace) -> None:
    from mle_rl import tasks
    from mle_rl.analysis.known import best_known
    from mle_rl.tasks.loading import default_data_dir

    loaded = []
    for name in tasks.names():
        if not (default_data_dir() / name).exists():
            print(f"building {name}", file=sys.stderr, flush=True)
        loaded.append(tasks.load(name))
    table = tasks.describe(loaded).drop(columns=["programs", "best_program"])
    known = [best_known(task) for task in loaded]
    place = table.columns.get_loc("best_reference") + 1
    table.insert(place, "best_known", [each.reward_score for each in known])
    table.insert(place + 1, "known_from", [each.source for each in known])
    print(table.to_string(index=False, float_format="{:.4g}".format))


def _check(options: argparse.Namespace) -> None:
    from mle_rl import sandbox

    print(sandbox.check())


def _headroom(options: argparse.Namespace) -> None:
    from mle_rl.analysis import headroom, samples

    folder = options.folder or samples.headroom_folder()
    if not options.report:
        try:
            _record(options, folder)
        except KeyboardInterrupt:
            raise KeyboardInterrupt("Interrupted; call again to go on from here.") from None
    found = samples.read_samples(folder, options.task)
    print(headroom.report(found) if found else f"No samples are recorded in {folder} yet.")


def _record(options: argparse.Namespace, folder: Path) -> None:
    from mle_rl import tasks
    from mle_rl.agent import load_policy
    from mle_rl.records import Limits
    from mle_rl.rollout.environment import Environment
    from mle_rl.sandbox import LocalPool
    from mle_rl.training.headroom import record_samples

    for name, value in (("samples", options.samples), ("workers", options.workers)):
        if value < 1:
            raise MleRlError(f"--{name} is {value}; give at least 1.")
    limit_threads(1)
    say = partial(print, flush=True)  # into a file, too
    chosen = [tasks.load(name) for name in options.task or tasks.names()]
    policy = load_policy(options.policy)
    with LocalPool(options.workers) as pool:
        for task in chosen:
            environment = Environment(task, pool, Limits())
            record_samples(policy, environment, folder, options.samples, say=say)


def _compare(options: argparse.Namespace) -> None:
    chosen = options.profile or profile()  # a mistake in it is said before the slow imports
    from mle_rl.search import command
    from mle_rl.search.settings import Settings

    settings = Settings(task=options.task, seconds=options.seconds, workers=options.workers)
    command.run(chosen, settings, options.seed, options.methods, options.out)


def _notebooks(options: argparse.Namespace) -> None:
    chosen = options.profile or profile()
    from mle_rl import notebook_runner

    notebook_runner.run(
        notebook_runner.find(only=options.only),
        chosen,
        resume=options.resume,
        parameters=[_parameter(text) for text in options.parameter],
    )


def _outputs(options: argparse.Namespace) -> None:
    chosen = options.profile or profile()
    from mle_rl import notebook_outputs, notebook_runner

    settings = notebook_runner.Settings(chosen, results_folder(chosen))
    for path in notebook_runner.find(only=options.only):
        notebook_outputs.adopt(settings.executed(path), path, chosen)
        print(f"{path.name}: outputs of the {chosen} profile")


def _parameter(text: str) -> tuple[str, object]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise MleRlError(f"{text!r} is not NAME=VALUE, as in '-p steps=10'.")
    try:
        read = ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value  # a bare word is a text
    return name, list(read) if isinstance(read, tuple) else read  # papermill writes lists only


if __name__ == "__main__":
    sys.exit(main())
