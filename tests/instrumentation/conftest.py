"""A warm interpreter for the tests that run programs, and the small data that programs read."""

import dataclasses
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mle_rl.instrumentation import Insertion

HERE = Path(__file__).parent
FIXTURES = HERE.parent / "fixtures"
STUBS = FIXTURES / "stubs"


@dataclasses.dataclass(frozen=True)
class Ran:
    """What a program left behind; ``files`` holds the bytes of all it wrote, by relative path."""

    status: int
    stdout: bytes
    stderr: str
    files: dict[str, bytes]
    marks: list[tuple[str, float | None]]

    @property
    def stages(self) -> list[str]:
        return list(dict.fromkeys(stage for stage, _ in self.marks))

    @property
    def values(self) -> dict[str, float | None]:
        return dict(self.marks)


class Interpreter:
    """The forking server, and a folder in which its programs run."""

    def __init__(self, folder: Path, data: Path) -> None:
        self._folder, self._data = folder, data
        self._count = 0
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(HERE.parent.parent),
            "PYTHONHASHSEED": "0",
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "HOME": str(folder),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        self._process = subprocess.Popen(
            [sys.executable, str(HERE / "forkserver.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
            cwd=folder,
        )
        assert self._process.stdout.readline() == "ready\n"

    def run(self, code: str, insertions: tuple[Insertion, ...] = (), encoding="utf-8") -> Ran:
        """Runs a program in a fresh folder that holds ``input/``."""
        # The same path each time, so that programs that print it print the same.
        self._count += 1
        work = self._folder / "work"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir()
        (work / "input").symlink_to(self._data)
        (work / "program.py").write_bytes(code.encode(encoding))
        out = {n: str(self._folder / f"{self._count}.{n}") for n in ("stdout", "stderr", "marks")}
        request = {
            **out,
            "folder": str(work),
            "insertions": [insertion.to_json() for insertion in insertions],
            "paths": [str(STUBS)],
            "encoding": encoding,
        }
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        status = json.loads(self._process.stdout.readline())
        marks = Path(out["marks"]).read_text().splitlines()
        return Ran(
            status,
            Path(out["stdout"]).read_bytes(),
            Path(out["stderr"]).read_text(),
            {
                str(path.relative_to(work)): path.read_bytes()
                for path in sorted(work.rglob("*"))
                if path.is_file() and "input" not in path.parts
            },
            [tuple(json.loads(line)) for line in marks],
        )

    def close(self) -> None:
        self._process.stdin.close()
        self._process.wait()


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """The public folder of a small competition."""
    folder = tmp_path_factory.mktemp("data") / "input"
    write_data(folder)
    return folder


@pytest.fixture(scope="session")
def interpreter(tmp_path_factory, data):
    """A warm interpreter; its first program starts well after the data was written."""
    folder = tmp_path_factory.mktemp("programs")
    interpreter = Interpreter(folder, data)
    yield interpreter
    interpreter.close()


def write_data(folder: Path) -> None:
    """A small competition: numbers, a text and images with two classes that can be told apart."""
    folder.mkdir()
    rng = np.random.default_rng(0)
    words = [["good", "fine", "great"], ["bad", "poor", "sad"]]

    def table(rows: int) -> pd.DataFrame:
        label = rng.integers(0, 2, rows)
        return pd.DataFrame(
            {
                "id": np.arange(rows),
                "a": (rng.normal(size=rows) + 2 * label).round(3),
                "b": rng.normal(size=rows).round(3),
                "city": rng.choice(["Rome", "Bonn", "Oslo"], rows),
                "text": [" ".join(rng.choice(words[k], 3)) for k in label],
                "target": label,
            }
        )

    train, test = table(80), table(40).drop(columns="target")
    train.to_csv(folder / "train.csv", index=False)
    test.to_csv(folder / "test.csv", index=False)
    train.to_json(folder / "train.jsonl", orient="records", lines=True)
    test[["id"]].assign(target=0).to_csv(folder / "sample_submission.csv", index=False)
    for name, labels in (("train", train.target), ("test", rng.integers(0, 2, 40))):
        images = (
            rng.integers(0, 120, (len(labels), 6, 6, 3))
            + 100 * np.asarray(labels)[:, None, None, None]
        )
        np.save(folder / f"{name}_images.npy", images.astype(np.uint8))
    np.savetxt(folder / "train_numbers.txt", train[["a", "b", "target"]].to_numpy())
    np.savetxt(folder / "test_numbers.txt", test[["a", "b"]].to_numpy())
    (folder / "meta.json").write_text('{"classes": [0, 1]}\n')
    (folder / "description.md").write_text("Predict `target`.\n")
