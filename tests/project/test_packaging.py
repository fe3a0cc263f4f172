"""One set of packages: named in pyproject.toml, pinned in constraints.txt, for conda as well."""

import ast
import re
import sys
import tomllib
from importlib import metadata

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from mle_rl import __version__
from mle_rl.notebook import project_root

ROOT = project_root()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
ENVIRONMENT = (ROOT / "environment.yml").read_text()


def _names(requirements) -> set[str]:
    return {canonicalize_name(Requirement(text).name) for text in requirements}


def _pins() -> dict[str, Requirement]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [Requirement(line) for line in lines if line and not line.startswith("#")]
    assert len({canonicalize_name(pin.name) for pin in pins}) == len(pins), "pinned twice"
    return {canonicalize_name(pin.name): pin for pin in pins}


def test_every_constraint_is_one_exact_public_version():
    for pin in _pins().values():
        (specifier,) = pin.specifier
        assert specifier.operator == "==", pin
        assert "+" not in specifier.version, f"{pin} is one particular build"
        assert pin.url is None, f"{pin} names a place"
        assert pin.marker is None, pin


def test_torch_is_pinned_exactly():
    assert str(_pins()["torch"]) == "torch==2.13.0"


def test_every_dependency_and_extra_is_pinned_at_a_version_it_allows():
    pins = _pins()
    for text in [*PROJECT["dependencies"], *(t for extra in EXTRAS.values() for t in extra)]:
        wanted = Requirement(text)
        assert canonicalize_name(wanted.name) in pins, f"{wanted} has no pin"
        (pin,) = pins[canonicalize_name(wanted.name)].specifier
        assert pin.version in wanted.specifier, f"{wanted} does not allow {pin}"


def test_conda_installs_what_pip_installs():
    pip = yaml.safe_load(ENVIRONMENT)["dependencies"][-1]["pip"]
    assert pip[0] == "--constraint constraints.txt"
    assert pip[-1] == "--editable ."
    named = pip[1:-1]
    assert set(named) == _names(PROJECT["dependencies"]) | _names(EXTRAS["dev"])
    assert named == sorted(named)


def test_every_line_of_environment_yml_gives_one_reason():
    lines = ENVIRONMENT.split("dependencies:\n")[1].splitlines()
    for line in lines:
        if line.strip() in ("- pip:", "- --constraint constraints.txt"):
            continue
        assert re.fullmatch(r" +- \S+( \.)? # \S.*", line), f"no reason: {line.strip()}"


def test_conda_takes_a_python_that_the_project_supports():
    python = yaml.safe_load(ENVIRONMENT)["dependencies"][0].removeprefix("python=")
    assert PROJECT["requires-python"] == f">={python}"


def test_this_environment_is_the_pinned_one():
    """What is tested is what is pinned: packages installed here have the pinned versions."""
    for name, pin in _pins().items():
        try:
            installed = metadata.version(name)
        except metadata.PackageNotFoundError:
            assert name not in _names([*PROJECT["dependencies"], *EXTRAS["dev"]])
            continue
        assert installed.split("+")[0] in pin.specifier, f"{name} {installed} is not {pin}"


def test_the_package_imports_nothing_that_it_does_not_declare():
    provided = metadata.packages_distributions()
    allowed = _names(PROJECT["dependencies"]) | _names(t for e in EXTRAS.values() for t in e)
    for path in sorted((ROOT / "mle_rl").rglob("*.py")):
        tree = ast.parse(path.read_text())
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                modules = [node.module]
            else:
                continue
            for module in {name.split(".")[0] for name in modules}:
                if module in sys.stdlib_module_names or module == "mle_rl":
                    continue
                owners = {canonicalize_name(name) for name in provided.get(module, [module])}
                assert owners & allowed, f"{path.relative_to(ROOT)} imports {module}"


@pytest.mark.parametrize("extra", ["smollm2", "ray", "vllm", "dev"])
def test_the_extras_exist(extra):
    assert EXTRAS[extra]


def test_the_citation_has_the_version_of_the_package():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == __version__
    assert citation["license"] == PROJECT["license"] == "Apache-2.0"
