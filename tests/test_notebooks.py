"""Every notebook runs from the first cell to the last in the smoke profile, in a fresh kernel."""

import pytest

from mle_rl.notebook_runner import Progress, Settings, execute, find


@pytest.mark.notebook
@pytest.mark.parametrize("path", find(), ids=lambda path: path.stem)
def test_it_runs(path, tmp_path):
    execute(path, Settings("smoke", tmp_path), Progress(path.stem))
    assert list((tmp_path / path.stem).glob("*.png")), "it saved no figure"
