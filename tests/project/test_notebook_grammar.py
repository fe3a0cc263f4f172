"""The grammar of the numbered notebooks, as far as a machine can check it."""

import ast
import re

import nbformat
import pytest

from mle_rl.notebook import project_root

NOTEBOOKS = sorted((project_root() / "notebooks").glob("[0-9][0-9]_*.ipynb"))
HEADER = ("Question", "Paper", "Run time", "Inputs", "Outputs")
LONGEST_CELL = 40


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def path(request):
    return request.param


@pytest.fixture
def cells(path):
    return nbformat.read(path, as_version=4).cells


def _code(cells):
    return [cell for cell in cells if cell.cell_type == "code"]


def _sources(cells) -> str:
    return "\n".join(cell.source for cell in _code(cells))


def _tree(cell) -> ast.Module:
    lines = ["" if line.startswith(("%", "!")) else line for line in cell.source.splitlines()]
    return ast.parse("\n".join(lines))


def test_there_are_notebooks():
    assert NOTEBOOKS


def test_it_opens_with_title_question_paper_run_time_inputs_and_outputs(path, cells):
    assert cells[0].cell_type == "markdown"
    assert re.match(rf"# {path.stem[:2]}\b", cells[0].source), "the title begins with the number"
    missing = [word for word in HEADER if f"**{word}**" not in cells[0].source]
    assert not missing
    question = cells[0].source.split("**Question**")[1].split("**Paper**")[0]
    assert "?" in question


def test_it_has_one_cell_of_parameters_with_plain_assignments(cells):
    (tagged,) = [cell for cell in cells if "parameters" in cell.metadata.get("tags", [])]
    assert tagged is _code(cells)[0], "parameters come before any other code"
    for statement in _tree(tagged).body:
        assert isinstance(statement, ast.Assign | ast.AnnAssign), ast.unparse(statement)
        ast.literal_eval(statement.value)  # papermill replaces values, not expressions


def test_what_is_recorded_is_read_from_the_checkout_not_from_where_this_run_writes(cells):
    """`results_folder` follows ``MLE_RL_RESULTS``, which every executed notebook has."""
    assert "results_folder" not in _sources(cells)


def test_setup_is_called_once_with_the_name_of_the_notebook(path, cells):
    assert re.findall(r"\bsetup\(\s*[\"']([^\"']*)[\"']", _sources(cells)) == [path.stem]


def test_figures_are_saved_with_their_numbers(cells):
    assert "save_figure(" in _sources(cells)
    assert ".savefig(" not in _sources(cells)


def test_it_asserts_what_it_claims(cells):
    asserted = [
        node for c in _code(cells) for node in ast.walk(_tree(c)) if type(node) is ast.Assert
    ]
    assert asserted


def test_cells_are_short_and_logic_lives_in_the_library(cells):
    for cell in _code(cells):
        statements = _tree(cell).body
        imports = [node for node in statements if isinstance(node, ast.Import | ast.ImportFrom)]
        imported = sum(node.end_lineno - node.lineno + 1 for node in imports)
        assert len(cell.source.splitlines()) - imported <= LONGEST_CELL, cell.id
        assert not [node for node in statements if isinstance(node, ast.ClassDef)], cell.id


def test_no_slider_stands_without_the_static_figure_above_it(cells):
    """What a slider calls was called before, outside of it: errors inside a widget are silent."""
    code = _code(cells)
    for position, cell in enumerate(code):
        earlier = {name for other in code[:position] for name in _called(_tree(other))}
        for name in re.findall(r"\binteract\(\s*(\w+)", cell.source):
            functions = [
                node for node in ast.walk(_tree(cell)) if isinstance(node, ast.FunctionDef)
            ]
            inside = {each for node in functions if node.name == name for each in _called(node)}
            assert earlier & ({name} | inside - {"show", "subplots"}), f"{name} in {cell.id}"


def _called(tree: ast.AST) -> set[str]:
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return {func.id if isinstance(func, ast.Name) else getattr(func, "attr", "") for func in calls}


def test_it_ends_with_summary_and_exercises(cells):
    headings = re.findall(
        r"^#+ (.+)$", "\n".join(c.source for c in cells if c.cell_type == "markdown"), re.MULTILINE
    )
    assert "Summary" in headings
    assert headings[-1] == "Exercises"


def test_nothing_random_is_drawn_from_global_state(cells):
    global_state = r"\bnp\.random\.(?!default_rng|Generator)|\brandom\.(seed|random|choice)\("
    assert not re.search(global_state, _sources(cells))
