"""The screen: reads whether a program could reach for the machinery that credits stages.

A program that is not trusted runs, and its submission counts, exactly as any other; it is just not
instrumented, so it earns no credit for stages. The screen therefore errs on the side of distrust.
It denies frames, code objects, closures, the garbage collector, built code, raw memory, replaced
library functions, names put together at run time, and every import that is not known to be
harmless. What no reading of the text can see is left to the `tripwire`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from mle_rl.instrumentation import libraries
from mle_rl.instrumentation.dataflow import FactFinder, parse
from mle_rl.instrumentation.facts import origins
from mle_rl.instrumentation.libraries import words

_STANDARD = words(
    "__future__ abc argparse array ast asyncio base64 bisect calendar cmath collections "
    "concurrent contextlib copy csv dataclasses datetime decimal difflib enum errno fractions "
    "functools gc getpass glob gzip hashlib heapq html io itertools json keyword locale "
    "logging lzma math multiprocessing numbers operator os pathlib pickle platform pprint "
    "queue random re secrets shutil statistics string sys tempfile textwrap threading time "
    "traceback typing unicodedata uuid warnings zipfile zoneinfo"
)
_OTHERS = words(
    "IPython albumentations bs4 category_encoders dask dateutil emoji gensim hyperopt joblib "
    "langdetect Levenshtein lxml matplotlib networkx nltk numba numexpr optuna patsy plotly "
    "psutil pytz rapidfuzz regex seaborn sentencepiece shap simpy spacy sympy tabulate textblob "
    "textstat threadpoolctl tokenizers tqdm typing_extensions umap yaml"
)
_IMPORTS = frozenset(_STANDARD) | frozenset(_OTHERS) | libraries.PACKAGES

_REACHING = words(
    "os sys gc ctypes ctypeslib inspect builtins importlib types marshal subprocess socket mmap "
    "posix code codeop dis fcntl signal tracemalloc faulthandler runpy pty"
)
"""Modules that other modules happen to hold; taken from there they are as good as imported."""

_NEVER = words(
    "gc ctypes ctypeslib inspect builtins importlib subprocess get_objects get_referrers "
    "get_referents"
)
"""Attributes that are denied whatever they are taken of."""

_HARMLESS = frozenset({"scipy.signal", "torch.signal", "torch.types", "pandas.api.types"})

_MODULE_ATTRIBUTES = {
    "os": words(
        "path environ listdir scandir walk makedirs mkdir getcwd chdir sep linesep pathsep name "
        "cpu_count getenv putenv remove unlink rmdir removedirs rename exists stat getpid urandom "
        "extsep PathLike fspath times"
    ),
    "string": words(
        "ascii_letters ascii_lowercase ascii_uppercase digits punctuation Template "
        "whitespace printable hexdigits capwords"
    ),
    "sys": words(
        "argv stdout stderr stdin exit path version version_info maxsize platform executable "
        "setrecursionlimit getrecursionlimit getsizeof float_info byteorder flags implementation "
        "warnoptions exc_info hexversion prefix"
    ),
    "gc": frozenset({"collect", "enable", "disable", "freeze"}),
    "io": frozenset({"StringIO", "BytesIO", "TextIOWrapper", "BufferedReader", "open"}),
    "traceback": frozenset({"print_exc", "format_exc"}),
    "operator": words("itemgetter add sub mul truediv mod pow eq ne lt le gt ge neg"),
    "threading": frozenset(
        ["Thread", "Lock", "RLock", "Event", "Condition", "Semaphore", "current_thread"]
    ),
}
_ASSIGNABLE = re.compile(
    r"sys\.(stdout|stderr)|warnings\.(warn|showwarning|formatwarning)|pandas\.options\..*|"
    r"torch\.backends\..*|matplotlib\..*|tqdm\..*|numpy\.seterr|random\.seed|transformers\..*\.verbosity"
)
_BUILTINS = frozenset(
    ["eval", "exec", "compile", "globals", "locals", "vars", "delattr", "breakpoint"]
)
_DUNDERS = words(
    "__name__ __file__ __doc__ __init__ __class__ __version__ __len__ __getitem__ __call__ "
    "__enter__ __exit__ __iter__ __next__ __repr__ __str__ __eq__ __ne__ __lt__ __le__ __gt__ "
    "__ge__ __hash__ __add__ __mul__ __sub__ __setitem__ __delitem__ __contains__ __post_init__ "
    "__new__ __author__ __all__ __main__ __slots__ __aenter__ __aexit__ __aiter__ __anext__ "
    "__bool__ __float__ __int__ __matmul__ __neg__ __del__ __set_name__ __get__ __getattr__ "
    "__format__ __abs__ __annotations__ __radd__ __rmul__ __iadd__ __truediv__ __match_args__ "
    "__debug__ __missing__ __index__ __array__"
)
_FRAME_NAMES = words(
    "f_back f_code f_locals f_globals f_builtins f_trace f_lasti tb_frame tb_next gi_frame "
    "gi_code gi_yieldfrom cr_frame cr_code cr_await ag_frame ag_code ag_await co_consts co_code "
    "co_names co_varnames co_filename co_freevars cell_contents func_globals func_code "
    "func_closure _getframe _current_frames settrace setprofile addaudithook _getframemodulename"
)
_TEXT = re.compile(
    r"__(code|globals|closure|subclasses|class|dict|mro|bases|base|func|self|builtins|import|"
    r"getattribute|reduce|reduce_ex|loader|spec|wrapped|kwdefaults|defaults|init_subclass)__|"
    r"_getframe|co_consts|f_code|f_back|tb_frame|gi_frame|cell_contents|/proc\b|/dev/fd|"
    r"\bsys\.modules|mle_rl|\bimport (os|sys|gc|ctypes|inspect|builtins)\b"
)
_WRITTEN_CODE = re.compile(r"\.(py|pyc|pyw|so|pth|egg|whl)$")


def trusted(code: str) -> bool:
    """Whether a program may earn credit for stages."""
    return why_not_trusted(code) is None


def why_not_trusted(code: str) -> str | None:
    """The first thing that costs a program its credit, with its line; None if there is nothing."""
    try:
        tree = parse(code)
        return screen(tree, FactFinder(tree))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None  # it does not run, or is not instrumented


def screen(tree: ast.Module, finder: FactFinder) -> str | None:
    """As `why_not_trusted`, for a tree whose facts are known."""
    called = {node.func for node in ast.walk(tree) if isinstance(node, ast.Call)}
    reasons = (
        (getattr(node, "lineno", 0), reason)
        for node in ast.walk(tree)
        for reason in _reasons(node, finder, node in called)
    )
    first = min(reasons, default=None)
    return None if first is None else f"line {first[0]} {first[1]}"


def _reasons(node: ast.AST, finder: FactFinder, called: bool) -> Iterator[str]:
    match node:
        case ast.Import():
            for alias in node.names:
                yield from _import_reasons(alias.name)
        case ast.ImportFrom():
            module = node.module or ""
            if node.level:
                yield "imports from a package of its own"
            yield from _import_reasons(module)
            for alias in node.names:
                yield from _member_reasons(module, alias.name)
        case ast.Name():
            yield from _name_reasons(node.id)
            if node.id in ("getattr", "hasattr", "setattr") and not called:
                yield f"hands on {node.id}"
        case ast.Attribute():
            yield from _attribute_reasons(node, finder)
            if node.attr == "modules" and not called:
                yield "reaches for modules"
        case ast.Call():
            yield from _call_reasons(node, finder)
        case ast.Constant(value=str() as text):
            yield from _text_reasons(text)
        case ast.Constant(value=bytes() as data):
            yield from _text_reasons(data.decode("latin-1"))
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            if _is_dunder(node.name) and node.name not in _DUNDERS:
                yield f"defines {node.name}"


def _import_reasons(module: str) -> Iterator[str]:
    if module.split(".")[0] not in _IMPORTS:
        yield f"imports {module.split('.')[0]}"
    elif any(part.startswith("_") and part != "__future__" for part in module.split(".")):
        yield f"imports the private module {module}"
    elif any(part in _REACHING for part in module.split(".")[1:]) and module not in _HARMLESS:
        yield f"imports {module}"


def _member_reasons(module: str, name: str) -> Iterator[str]:
    allowed = _MODULE_ATTRIBUTES.get(module)
    if allowed is not None and name not in allowed:
        yield f"takes {module}.{name}"
    elif _is_reaching(module, name) or (name.startswith("_") and module != "__future__"):
        yield f"takes {name} from {module}"


def _name_reasons(name: str) -> Iterator[str]:
    if name in _BUILTINS or (_is_dunder(name) and name not in _DUNDERS):
        yield f"uses {name}"


def _attribute_reasons(node: ast.Attribute, finder: FactFinder) -> Iterator[str]:
    name, base = node.attr, origins(finder.of(node.value))
    foreign = _is_dunder(name) and name not in _DUNDERS
    if foreign or name in _FRAME_NAMES | _NEVER or any(_is_reaching(b, name) for b in base):
        yield f"reaches for {name}"
    elif base and name.startswith("_") and not _is_dunder(name):
        yield f"reaches for the private name {name}"
    for module in base & _MODULE_ATTRIBUTES.keys():
        if name not in _MODULE_ATTRIBUTES[module]:
            yield f"uses {module}.{name}"
    stored = base if not isinstance(node.ctx, ast.Load) else ()
    if stored and not any(_ASSIGNABLE.fullmatch(f"{b}.{name}") for b in stored):
        yield f"replaces {name} of {min(stored)}"


def _is_reaching(module: str, name: str) -> bool:
    return name in _REACHING and f"{module}.{name}" not in _HARMLESS


def _call_reasons(node: ast.Call, finder: FactFinder) -> Iterator[str]:
    names = origins(finder.of(node.func))
    called = node.func.id if isinstance(node.func, ast.Name) else ""
    method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if called in ("getattr", "hasattr") and len(node.args) > 1:
        if not isinstance(node.args[1], ast.Constant):
            yield f"uses {called} with a name put together at run time"
        else:
            wanted = str(node.args[1].value)
            if wanted in _FRAME_NAMES | _REACHING | _BUILTINS or wanted.startswith("_"):
                yield f"uses {called} for {wanted}"
    elif method in ("query", "eval") and node.args and not isinstance(node.args[0], ast.Constant):
        yield f"calls {method} on a text put together at run time"
    elif called == "setattr":
        match node.args:
            case [ast.Name("self"), _, _]:
                pass
            case _:
                yield "uses setattr on something other than self"
    elif called == "type" and len(node.args) == 3:
        yield "makes a class by calling type"
    if called == "open" or "io.open" in names:
        match node.args:
            case [ast.Constant(value=int()), *_]:
                yield "opens a raw descriptor"


def _text_reasons(text: str) -> Iterator[str]:
    found = _TEXT.search(text)
    if found:
        yield f"has the text {found[0]!r}"
    elif _WRITTEN_CODE.search(text) and len(text) < 200:
        yield "names a file of code"


def _is_dunder(name: str) -> bool:
    return len(name) > 4 and name.startswith("__") and name.endswith("__")
