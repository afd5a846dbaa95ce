"""The code panel: a script that computes what is on screen, and the core's functions behind it.

A view names a function and its arguments. The script is the body of that function, below the
imports of its names and the lines that create its arguments. So it is checked and renamed like
all code.
"""

import ast
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterable
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, ParamSpec

import streamlit as st
from torch import Tensor

from explorer.analysis.circuits.text_pairs import Question, question_of
from explorer.app.controls import expander
from explorer.app.reader import is_local
from explorer.app.session import state_of
from explorer.catalog.opened_model import OpenModel, open_checkpoint
from explorer.catalog.typed_model_path import paths_allowed
from explorer.components.mounting import PageViews
from explorer.inference.edited_pass import EditedPass, run_edited
from explorer.inference.forward_pass import ForwardPass, rerun, run_text
from explorer.runs.run import Run
from explorer.text.visible_text import literal_sentence

ROOT = Path(__file__).resolve().parents[3]
WIDTH, LIST_WIDTH = 96, 60
"""Characters of a line, and of a list that is written on one line."""
OURS = ("explorer", "models")
P = ParamSpec("P")


class Expression(str):
    """Code that is printed as it is: a script names a text of the reader and does not copy it."""

    __repr__ = str.__str__


@dataclass(frozen=True, eq=False)
class Script:
    """Functions with their arguments; the text is written when a reader opens the panel."""

    calls: tuple[tuple[Callable[..., None], dict[str, Any]], ...]

    def __add__(self, other: "Script") -> "Script":
        """One after the other; an argument of both is created once."""
        return Script(self.calls + other.calls)

    def text(self, shows_paths: bool = False) -> tuple[str, tuple[str, ...]]:
        """The script, which runs in the folder of the README, and the folders elsewhere of which
        it has only the name; with `shows_paths` it has the path to each.
        """
        lines = _Lines(shows_paths)
        for function, arguments in self.calls:
            lines.add(function, arguments)
        return "\n".join([*lines.import_lines(), *lines.lines]), tuple(lines.named)


def script(function: Callable[P, None], *args: P.args, **named: P.kwargs) -> Script:
    """The script of a function: its lines create models, passes, questions and runs."""
    return Script(((function, inspect.signature(function).bind(*args, **named).arguments),))


def code_panel(
    *functions: Callable[..., Any], script: Script | None = None, label: str = "Code"
) -> None:
    """The script, and the core's functions behind it; nothing is sent while the panel is closed."""
    with expander("code", label=label) as panel:
        if not panel.open:
            return
        if checks := state_of(PageViews).checks:
            st.caption(" ".join(checks))
        if script is not None:
            text, named = script.text(paths_allowed(is_local()))
            models = literal_sentence(" and to ".join(named))
            paths = f", with the path to {models} in place of the name"
            st.caption(f"Run this in the folder of the README{paths if named else ''}:")
            st.code(text, language="python")
        for function in functions:
            place, code = excerpt(function)
            st.caption(place)
            st.code(code, language="python")


@cache
def excerpt(function: Callable[..., Any]) -> tuple[str, str]:
    """Where a function or class of this project is defined, and its lines."""
    function = inspect.unwrap(function)
    lines, first = inspect.getsourcelines(function)
    path = Path(inspect.getfile(function)).relative_to(ROOT).as_posix()
    return f"`{path}`, line {first}", inspect.cleandoc("".join(lines))


class _Lines:
    """The lines of a script, and what they import."""

    def __init__(self, shows_paths: bool) -> None:
        self.shows_paths = shows_paths
        self.named: dict[str, None] = {}
        self.lines: list[str] = []
        self.imports: dict[str, set[str]] = {}
        self.values: dict[str, object] = {}

    def add(self, function: Callable[..., None], arguments: dict[str, Any]) -> None:
        """Add the arguments that the script does not have yet, then the body."""
        plain, is_first = {}, not self.lines
        for name, value in arguments.items():
            if name in self.values and self.values[name] == value:
                continue
            match value:
                case OpenModel():
                    self._open(value.folder, value.reads_prompts)
                case ForwardPass():
                    self._run(name, value)
                case EditedPass():
                    if "forward" not in self.values:
                        self._run("forward", replace(value.forward, edits=()))
                    self._edit(name, "forward", value.applied)
                case Question():
                    pairs = self._literal([pair.texts for pair in value.pairs])
                    call = f"{self._name(question_of)}(opened, {pairs}, {value.metric!r})"
                    self.lines.append(f"{name} = {call}")
                case Run():
                    folder = value.folder
                    path = folder if self.shows_paths else folder.with_name(value.title)
                    self._put_folder(name, path, Run)
                case Path():
                    self._put_folder(name, value)
                case _:
                    plain[name] = self._literal(value)
            self.values[name] = value
        line = f"{', '.join(plain)} = {', '.join(plain.values())}"
        if len(line) > WIDTH:
            self.lines += [f"{name} = {value}" for name, value in plain.items()]
        elif plain:
            self.lines.append(line)
        if is_first and self.lines:
            self.lines.append("")
        self.lines += [*self._body(function), ""]

    def _open(self, folder: Path, reads_prompts: bool) -> None:
        if self.values.get("opened from") == (folder, reads_prompts):
            return
        self.values["opened from"] = folder, reads_prompts
        self._put_folder("folder", folder)
        how = ", reads_prompts=True" if reads_prompts else ""
        self.lines.append(f"opened = {self._name(open_checkpoint)}(folder, folder.name{how})")

    def _run(self, name: str, forward: ForwardPass) -> None:
        """Run its text, or the tokens of an earlier pass if another model read the same ones."""
        self._open(forward.folder, forward.reads_prompts)
        typed = ", ".join(repr(text) for text in (forward.text, forward.pair) if text)
        call = f"{self._name(run_text)}(opened, {typed})"
        tokens = forward.source, forward.target
        for earlier, value in self.values.items():
            if not isinstance(value, ForwardPass) or value.edits or value.folder == forward.folder:
                continue
            if (value.source, value.target) == tokens:
                again = self._name(rerun)
                call = f"{again}(opened, {earlier}, {earlier}.source, {earlier}.target, ())"
        self.lines.append(f"{name} = {call}")
        self.values[name] = forward
        if forward.edits:
            self._edit(name, name, forward.edits, ".forward")

    def _edit(self, name: str, before: str, edits: Iterable[object], end: str = "") -> None:
        call = f"{self._name(run_edited)}(opened, {before}, {self._literal([*edits])}){end}"
        self.lines.append(f"{name} = {call}")

    def _put_folder(self, name: str, folder: Path, kind: type = Path) -> None:
        """Its path from the README; of a folder elsewhere the path is not everybody's business."""
        path = folder.as_posix() if self.shows_paths else folder.name
        if folder.is_relative_to(ROOT):
            path = folder.relative_to(ROOT).as_posix()
        elif not self.shows_paths:
            self.named[path] = None
        self.lines.append(f"{name} = {self._name(kind)}({path!r})")
        self.values[name] = folder

    def _literal(self, value: object) -> str:
        """A plain value as code."""
        if isinstance(value, Tensor):
            raise TypeError("A tensor is no argument of a script.")
        if is_dataclass(value) and not isinstance(value, type):
            arguments = [
                f"{field.name}={self._literal(getattr(value, field.name))}"
                for field in fields(value)
                if field.default is MISSING or getattr(value, field.name) != field.default
            ]
            return f"{self._name(type(value))}({', '.join(arguments)})"
        if not isinstance(value, list | tuple | dict):
            return repr(value)
        start, end = {list: ("[", "]"), tuple: ("(", ")"), dict: ("{", "}")}[type(value)]
        items = [self._literal(item) for item in value]
        if isinstance(value, dict):
            items = [f"{key!r}: {self._literal(item)}" for key, item in value.items()]
        line = ", ".join(items) + ("," if end == ")" and len(items) == 1 else "")
        if len(line) <= LIST_WIDTH:
            return f"{start}{line}{end}"
        return "\n".join([start, *(f"    {item}," for item in items), end])

    def _name(self, value: Callable[..., Any]) -> str:
        """The name of a function or class, which is imported."""
        self.imports.setdefault(value.__module__, set()).add(value.__name__)
        return value.__name__

    def _body(self, function: Callable[..., None]) -> list[str]:
        """The lines of a function below its docstring; imports their names as its file does."""
        source = textwrap.dedent(inspect.getsource(function))
        definition = ast.parse(source).body[0]
        assert isinstance(definition, ast.FunctionDef)
        statements = definition.body[ast.get_docstring(definition) is not None :]
        nodes = (node for statement in statements for node in ast.walk(statement))
        code = function.__code__
        used = {node.id for node in nodes if isinstance(node, ast.Name)} - {*code.co_varnames}
        module = sys.modules[function.__module__]
        for node in ast.parse(inspect.getsource(module)).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                package = (node.module or "") if isinstance(node, ast.ImportFrom) else ""
                if names := {name.name for name in node.names} & used:
                    self.imports.setdefault(package, set()).update(names)
            elif isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name in used:
                self.imports.setdefault(module.__name__, set()).add(node.name)
        body = source.splitlines()[statements[0].lineno - 1 :]
        return textwrap.dedent("\n".join(body)).splitlines()

    def import_lines(self) -> list[str]:
        """The imports of the standard library, then of other packages, then of this project."""
        groups: list[list[str]] = [[], [], []]
        for module, names in sorted(self.imports.items()):
            top = module.partition(".")[0]
            group = 0 if top in sys.stdlib_module_names else 2 if top in OURS else 1
            start = f"from {module} import" if module else "import"
            groups[group].append(f"{start} {', '.join(sorted(names))}")
        return [line for group in groups if group for line in (*group, "")]
