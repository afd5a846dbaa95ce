"""The house stands as designed: which room may know which, what lies where, what is never written.

Each rule is one test, and its failure names every file that breaks it.
"""

import ast
import builtins
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from graphlib import TopologicalSorter
from pathlib import Path

from explorer.app import whole_packages
from tests.source import ROOT, files, imports, python_files

ROOMS = {"app", "pages", "explorer", "models", "tests", "docs"}
MAY_KNOW = {
    "app.py": {"explorer", "models"},
    "pages": {"explorer", "models"},
    "explorer": {"explorer", "models"},
    "models": {"models"},
    "tests": ROOMS,
    "docs": ROOMS,
}
ORDER = tuple(
    "models system text lessons tasks catalog interventions inference analysis runs "
    "charts export commands app server components views pages".split()
)
"""A room may import those before it."""
MOST_FLOORS = 9
CORE_KNOWS = {"torch", "safetensors", "jaxtyping", "gguf"}
ABOUT_THE_SCREEN = {"app", "components", "views"}
TOP = {
    *".ci .gitattributes .github .gitignore .streamlit LICENSE README.md app.py deploy".split(),
    *"docs explorer models pages pyproject.toml requirements.txt requirements-dev.txt".split(),
    *("tests", "CHANGELOG.md", "CITATION.cff", "CONTRIBUTING.md", "SECURITY.md"),
}
MAPPED = "who cuts a mapped file short kills the process"
MARKUP, CODE = "text from outside would become markup", "text from outside would become code"
NEVER_IN_PYTHON = {
    r"\btorch\.load\b": "pickled weights run code",
    r"^\s*(import|from) pickle\b": "pickles run code",
    r"\bsafe_open\b|\bmemmap\b|^\s*import mmap\b|\bsafetensors.*load_file\b": MAPPED,
    r"unsafe_allow": MARKUP,
    r"\bst\.html\(": MARKUP,
    r"(?<![.\w])(eval|exec)\(": CODE,
}
OS_ERRORS = {
    name
    for name, kind in vars(builtins).items()
    if isinstance(kind, type) and (issubclass(kind, OSError) or issubclass(OSError, kind))
}
"""What catches an error that names a path."""
NEVER_IN_A_BROWSER = {
    r"\b(inner|outer)HTML\b": MARKUP,
    r"\binsertAdjacentHTML\b": MARKUP,
    r"\bdocument\.write\b": MARKUP,
    r"\beval\(|\bnew Function\b|\bimport\(": CODE,
    r"https?://(?!www\.w3\.org/)": "nothing is fetched from outside",
}


def known(path: Path) -> set[str]:
    """The top-level packages that a file imports."""
    return {module.partition(".")[0] for module in imports(path)}


def written(paths: Iterable[Path], never: dict[str, str]) -> list[str]:
    """Every file that holds what is never to be written, and why not."""
    texts = {path: (ROOT / path).read_text("utf-8") for path in paths}
    pairs = [(path, pattern) for path in texts for pattern in never]
    held = [pair for pair in pairs if re.search(pair[1], texts[pair[0]], re.MULTILINE)]
    return [f"{path}: {pattern}: {never[pattern]}" for path, pattern in held]


def test_imports_run_one_way() -> None:
    against = {path: known(path) & ROOMS - MAY_KNOW[path.parts[0]] for path in python_files()}
    assert {path: rooms for path, rooms in against.items() if rooms} == {}


def test_no_files_import_each_other_in_a_circle() -> None:
    """Also inside functions, and for types alone; the error names the files."""
    paths = {".".join(path.with_suffix("").parts): path for path in python_files(*MAY_KNOW)}
    graph = {name: imports(path) & paths.keys() - {name} for name, path in paths.items()}
    TopologicalSorter(graph).prepare()


def test_a_package_that_imports_its_own_modules_comes_whole() -> None:
    """Two files that import its modules, in two threads, else get half of it."""
    served = python_files("app.py", "pages", "explorer", "models")
    paths = {".".join(path.with_suffix("").parts): path for path in served}
    reach = {
        name.removesuffix(".__init__"): {each for each in imports(path) if each in paths}
        for name, path in paths.items()
    }
    for name in [name.removesuffix("__init__") for name in paths if name.endswith(".__init__")]:
        into = [each for each in reach if any(to.startswith(name) for to in reach[each])]
        outside = [each for each in into if not f"{each}.".startswith(name)]
        if name[:-1] in into and len(outside) > 1:
            assert name[:-1] in whole_packages.PACKAGES


def room(module: str) -> str:
    """The room of a module; the command line stands outside of all of them."""
    first, _, rest = module.partition(".")
    return rest.partition(".")[0] if first == "explorer" else first


def room_imports() -> Iterator[tuple[str, str]]:
    """Every module with each other room that it imports."""
    for path in python_files("pages", "explorer", "models"):
        module = ".".join(path.with_suffix("").parts)
        others = {room(each) for each in imports(path)} & set(ORDER) - {room(module)}
        yield from ((module, other) for other in others if room(module) in ORDER)


def test_a_room_knows_only_those_before_it() -> None:
    rank = {name: at for at, name in enumerate(ORDER)}
    assert {(module, to) for module, to in room_imports() if rank[room(module)] < rank[to]} == set()


def test_the_longest_chain_of_rooms_is_short() -> None:
    """Rooms of `explorer` one above another; those that import against the order do not count."""
    floors: dict[str, int] = dict.fromkeys(ORDER, 1)
    for name in ORDER[1:-1]:
        below = {to for module, to in room_imports() if room(module) == name}
        under = [floors[to] for to in ORDER[1 : ORDER.index(name)] if to in below]
        floors[name] = 1 + max(under, default=0)
    assert max(floors.values()) <= MOST_FLOORS, floors


def test_every_room_is_in_the_order_and_no_module_stands_outside() -> None:
    inside = [path for path in python_files("explorer") if path.parts[1] != "__init__.py"]
    assert {path.parts[1] for path in inside} <= {*ORDER, "__main__.py"}


def test_a_file_name_stands_for_one_thing_and_an_address_for_one_page() -> None:
    for rooms in (("explorer", "models"), ("pages",)):
        names = Counter(path.stem for path in python_files(*rooms))
        assert [name for name, times in names.items() if times > 1 and name != "__init__"] == []


def test_a_public_class_name_stands_for_one_thing() -> None:
    names = Counter[str]()
    for path in python_files("explorer", "models"):
        body = ast.parse((ROOT / path).read_text("utf-8")).body
        names.update(node.name for node in body if isinstance(node, ast.ClassDef))
    assert [name for name, times in names.items() if times > 1 and name[0] != "_"] == []


def test_what_has_a_noun_is_named_by_it() -> None:
    vague = {"said", "told", "found", "made", "shown", "asked", "held", "given", "each"}
    for path in python_files("pages", "explorer", "models"):
        for node in ast.walk(ast.parse((ROOT / path).read_text("utf-8"))):
            bound = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id
            name = bound or getattr(node, "arg", None) or getattr(node, "name", None)
            assert name not in vague or isinstance(node, ast.keyword), f"{path}: {name}"
            assert not isinstance(node, ast.FunctionDef) or name != "show", path


def test_the_core_needs_little() -> None:
    little = CORE_KNOWS | {"models"} | set(sys.stdlib_module_names)
    against = {path: known(path) - little for path in python_files("models")}
    assert against.pop(Path("models/loading/checkpoint_tokenizer.py")) == {"tokenizers"}
    assert {path: packages for path, packages in against.items() if packages} == {}


def test_text_from_a_file_is_read_by_few() -> None:
    """By those who make visible what is no text; the others read what the app itself wrote.

    The tokens of a vocabulary are made visible where they are shown.
    """
    strangers = {"file_text", "lesson_file", "pair_table", "own_data"}
    strangers |= {"tokenizer", "adopted", "tokenizer_files"}
    own = {"minimal", "wire", "library_training", "child", "process", "steps", "running_time"}
    shipped = {"limits", "pretrained_models", "exhibits"}
    app = python_files("app.py", "pages", "explorer", "models")
    others = [path for path in app if path.stem not in strangers | own | shipped]
    reads = r"\b(json|tomllib)\.loads?\b|\bcsv\.(reader|DictReader)\b"
    assert written(others, {reads: "call `parse_json`"}) == []


def test_few_files_know_the_screen() -> None:
    others = [path for path in python_files("explorer") if path.parts[1] not in ABOUT_THE_SCREEN]
    assert [path for path in others if "streamlit" in known(path)] == []
    views = [path for path in python_files("pages", "explorer") if path.parts[1] != "app"]
    assert written(views, {"session_state": "asked by app/widget_state.py alone"}) == []


def test_the_root_holds_what_was_agreed() -> None:
    assert {path.parts[0] for path in files()} <= TOP


def test_nothing_dangerous_is_written() -> None:
    app = python_files("app.py", "pages", "explorer", "models")
    browser = [path for path in files() if path.suffix in {".js", ".css", ".html"}]
    assert app
    assert browser
    assert written(app, NEVER_IN_PYTHON) + written(browser, NEVER_IN_A_BROWSER) == []


def quoted_os_errors(path: Path) -> Iterator[int]:
    """The handlers that put an OSError as it is into words: it names paths of this machine.

    Where a handler asks what it caught, it says so of the others.
    """
    for handler in ast.walk(ast.parse((ROOT / path).read_text("utf-8"))):
        if not isinstance(handler, ast.ExceptHandler) or handler.type is None:
            continue
        caught = {getattr(node, "id", "") for node in ast.walk(handler.type)}
        asks = "isinstance" in {getattr(node, "id", "") for node in ast.walk(handler)}
        if asks or not caught & OS_ERRORS:
            continue
        for node in ast.walk(handler):
            is_text = isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("str", "repr")
            inside = node.args if isinstance(node, ast.Call) and is_text else []
            inside = [node.value] if isinstance(node, ast.FormattedValue) else inside
            if any(getattr(each, "id", None) == handler.name for each in inside):
                yield handler.lineno


def test_no_sentence_says_where_on_this_machine_something_lies() -> None:
    """`in_a_sentence` says what an OSError says, without the path."""
    app = python_files("pages", "explorer", "models")
    found = {path: [*quoted_os_errors(path)] for path in app if path.parts[1] != "commands"}
    assert {path: lines for path, lines in found.items() if lines} == {}


def test_tests_wait_for_states_and_measure_no_time() -> None:
    """Sleeping makes a test slow on a quick machine and wrong on a slow one."""
    clock = {
        r"\btime\.sleep\(|wait_for_timeout\(": "wait for a state",
        r"\bperf_counter\(|\bprocess_time\(": "measured by tests/benchmarks",
        r"pytest\.mark\.(flaky|xfail)": "a test that fails is mended",
    }
    tests = [path for path in python_files("tests") if path.parts[1] != "benchmarks"]
    allowed = {Path(f"tests/{name}.py") for name in ("served", "reader", "test_house")}
    assert written([path for path in tests if path not in allowed], clock) == []
