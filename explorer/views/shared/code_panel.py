"""The code panel: a script that makes what is on screen, and the core's functions behind it.

A view names a function and its arguments. The script is the body of that function, below the lines
that make its arguments: it is type-checked and renamed like all code, and its imports are those of
the names in it.
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
from explorer.catalog.opened_model import OpenModel, opened_from
from explorer.inference.edited_pass import EditedPass, run_edited
from explorer.inference.forward_pass import ForwardPass, rerun, run_text
from explorer.runs.run import Run

ROOT = Path(__file__).resolve().parents[3]
WIDTH, LIST_WIDTH = 96, 60
"""Characters of a line, and of what stands on one line in a list."""
OURS = ("explorer", "models")
P = ParamSpec("P")


class Expression(str):
    """Printed as it stands: a text that the reader gave is named in a script, not copied."""

    __repr__ = str.__str__


@dataclass(frozen=True, eq=False)
class Script:
    """Functions with their arguments; the bodies are printed when somebody opens the panel."""

    calls: tuple[tuple[Callable[..., None], dict[str, Any]], ...]

    def __add__(self, other: "Script") -> "Script":
        """One after the other; an argument that both have is made once."""
        return Script(self.calls + other.calls)

    def text(self) -> str:
        """Run it where the README is."""
        made = _Lines()
        for function, arguments in self.calls:
            made.add(function, arguments)
        return "\n".join([*made.import_lines(), *made.lines])


def script(function: Callable[P, None], *args: P.args, **named: P.kwargs) -> Script:
    """The script of a function: models, passes, questions and runs are made, the rest is plain."""
    return Script(((function, inspect.signature(function).bind(*args, **named).arguments),))


def code_panel(
    *functions: Callable[..., Any], script: Script | None = None, label: str = "Code"
) -> None:
    """The script, and the core's own functions behind it; not even sent until it is opened."""
    with expander("code", label=label) as panel:
        if not panel.open:
            return
        if script is not None:
            st.caption("Run this in the folder of the README:")
            st.code(script.text(), language="python")
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

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.imports: dict[str, set[str]] = {}
        self.made: dict[str, object] = {}

    def add(self, function: Callable[..., None], arguments: dict[str, Any]) -> None:
        """The arguments that are not made yet, then the body."""
        plain, is_first = {}, not self.lines
        for name, value in arguments.items():
            if name in self.made and self.made[name] == value:
                continue
            match value:
                case OpenModel():
                    self._open(value.folder, value.reads_prompts)
                case ForwardPass():
                    self._run(name, value)
                case EditedPass():
                    if "forward" not in self.made:
                        self._run("forward", replace(value.forward, edits=()))
                    self._edit(name, "forward", value.applied)
                case Question():
                    pairs = self._literal([pair.texts for pair in value.pairs])
                    call = f"{self._name(question_of)}(opened, {pairs}, {value.metric!r})"
                    self.lines.append(f"{name} = {call}")
                case Run():
                    self._put_folder(name, value.folder.with_name(value.title), Run)
                case Path():
                    self._put_folder(name, value)
                case _:
                    plain[name] = self._literal(value)
            self.made[name] = value
        together = f"{', '.join(plain)} = {', '.join(plain.values())}"
        if len(together) > WIDTH:
            self.lines += [f"{name} = {value}" for name, value in plain.items()]
        elif plain:
            self.lines.append(together)
        if is_first and self.lines:
            self.lines.append("")
        self.lines += [*self._body(function), ""]

    def _open(self, folder: Path, reads_prompts: bool) -> None:
        if self.made.get("opened from") == (folder, reads_prompts):
            return
        self.made["opened from"] = folder, reads_prompts
        self._put_folder("folder", folder)
        how = ", reads_prompts=True" if reads_prompts else ""
        self.lines.append(f"opened = {self._name(opened_from)}(folder, folder.name{how})")

    def _run(self, name: str, forward: ForwardPass) -> None:
        """Its text is run; the tokens of an earlier argument, where another model read them."""
        self._open(forward.folder, forward.reads_prompts)
        typed = ", ".join(repr(each) for each in (forward.text, forward.pair) if each)
        call = f"{self._name(run_text)}(opened, {typed})"
        for first, other in self.made.items():
            if isinstance(other, ForwardPass) and _is_given(forward, other):
                again = self._name(rerun)
                call = f"{again}(opened, {first}, {first}.source, {first}.target, ())"
        self.lines.append(f"{name} = {call}")
        self.made[name] = forward
        if forward.edits:
            self._edit(name, name, forward.edits, ".forward")

    def _edit(self, name: str, before: str, edits: Iterable[object], end: str = "") -> None:
        call = f"{self._name(run_edited)}(opened, {before}, {self._literal([*edits])}){end}"
        self.lines.append(f"{name} = {call}")

    def _put_folder(self, name: str, folder: Path, kind: type = Path) -> None:
        """From where the README is; of a folder elsewhere only its name: nobody else knows more."""
        if folder.is_relative_to(ROOT):
            shown, hint = folder.relative_to(ROOT).as_posix(), ""
        else:
            shown, hint = folder.name, "  # put the way to it in front"
        self.lines.append(f"{name} = {self._name(kind)}({shown!r}){hint}")
        self.made[name] = folder

    def _literal(self, value: object) -> str:
        """A plain value as code."""
        if isinstance(value, Tensor):
            raise TypeError("A tensor is no argument of a script.")
        if is_dataclass(value) and not isinstance(value, type):
            given = [
                f"{field.name}={self._literal(getattr(value, field.name))}"
                for field in fields(value)
                if field.default is MISSING or getattr(value, field.name) != field.default
            ]
            return f"{self._name(type(value))}({', '.join(given)})"
        if not isinstance(value, list | tuple | dict):
            return repr(value)
        start, end = {list: ("[", "]"), tuple: ("(", ")"), dict: ("{", "}")}[type(value)]
        items = [self._literal(each) for each in value]
        if isinstance(value, dict):
            items = [f"{key!r}: {self._literal(each)}" for key, each in value.items()]
        together = ", ".join(items) + ("," if end == ")" and len(items) == 1 else "")
        if len(together) <= LIST_WIDTH:
            return f"{start}{together}{end}"
        return "\n".join([start, *(f"    {each}," for each in items), end])

    def _name(self, value: Callable[..., Any]) -> str:
        """The name of a function or class, which is imported."""
        self.imports.setdefault(value.__module__, set()).add(value.__name__)
        return value.__name__

    def _body(self, function: Callable[..., None]) -> list[str]:
        """The lines of a function below its docstring; their names are imported as in its file."""
        source = textwrap.dedent(inspect.getsource(function))
        definition = ast.parse(source).body[0]
        assert isinstance(definition, ast.FunctionDef)
        statements = definition.body[ast.get_docstring(definition) is not None :]
        nodes = (node for statement in statements for node in ast.walk(statement))
        used = {node.id for node in nodes if isinstance(node, ast.Name)}
        module = sys.modules[function.__module__]
        for each in ast.parse(inspect.getsource(module)).body:
            if isinstance(each, ast.Import | ast.ImportFrom):
                package = (each.module or "") if isinstance(each, ast.ImportFrom) else ""
                if names := {name.name for name in each.names} & used:
                    self.imports.setdefault(package, set()).update(names)
            elif isinstance(each, ast.ClassDef | ast.FunctionDef) and each.name in used:
                self.imports.setdefault(module.__name__, set()).add(each.name)
        body = source.splitlines()[statements[0].lineno - 1 :]
        return textwrap.dedent("\n".join(body)).splitlines()

    def import_lines(self) -> list[str]:
        """Those of the standard library, of other packages, and of this project."""
        groups: list[list[str]] = [[], [], []]
        for module, names in sorted(self.imports.items()):
            top = module.partition(".")[0]
            group = 0 if top in sys.stdlib_module_names else 2 if top in OURS else 1
            listed = ", ".join(sorted(names))
            groups[group].append(f"from {module} import {listed}" if module else f"import {listed}")
        return [line for group in groups if group for line in (*group, "")]


def _is_given(forward: ForwardPass, first: ForwardPass) -> bool:
    """Whether another model was given the tokens of this pass."""
    tokens = (forward.source, forward.target) == (first.source, first.target)
    return tokens and forward.folder != first.folder and not first.edits
