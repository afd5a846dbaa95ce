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
from explorer.app.panels import expander
from explorer.catalog.opened_model import Opened, opened_from
from explorer.inference.edited_pass import EditedPass, run_edited
from explorer.inference.forward_pass import ForwardPass, rerun, run_text
from explorer.runs.run import Run

ROOT = Path(__file__).resolve().parents[3]
WIDTH = 96
P = ParamSpec("P")


class Expression(str):
    """Printed as it stands: a text that the reader gave is named in a script, not copied."""

    __repr__ = str.__str__


@dataclass(frozen=True, eq=False)
class Script:
    """Functions with their arguments; the bodies are printed when somebody opens the panel."""

    functions: tuple[Callable[..., None], ...]
    arguments: dict[str, Any]

    def __add__(self, other: "Script") -> "Script":
        """Both in one script: arguments of one name are the same."""
        return Script(self.functions + other.functions, self.arguments | other.arguments)

    def text(self) -> str:
        """Run it where the README is."""
        made = _Lines()
        for name, value in self.arguments.items():
            made.add(name, value)
        return made.script(self.functions)


def script(function: Callable[P, None], *args: P.args, **named: P.kwargs) -> Script:
    """The script of a function: models, passes, questions and runs are made, the rest is plain."""
    return Script((function,), inspect.signature(function).bind(*args, **named).arguments)


def code_panel(
    *functions: Callable[..., Any], script: Script | None = None, label: str = "Code"
) -> None:
    """The script, and the core's own functions behind it; not even sent until it is opened."""
    with expander(label, "code") as panel:
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
    """The lines that make arguments, and what they import."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.plain: list[tuple[str, str]] = []
        self.imports: dict[str, set[str]] = {}
        self.opened: dict[str, tuple[Path, bool]] = {}
        self.run: dict[str, ForwardPass] = {}

    def add(self, name: str, value: object) -> None:
        """After these lines a variable of this name is this value."""
        match value:
            case Opened():
                self._open(name, value.folder, value.reads_prompts)
            case ForwardPass():
                self._run(name, value)
            case EditedPass():
                if "forward" not in self.run:
                    self._run("forward", replace(value.forward, edits=()))
                edits = self._literal([*value.applied])
                self.lines.append(f"{name} = {self._name(run_edited)}(opened, forward, {edits})")
            case Question():
                pairs = self._literal([pair.texts for pair in value.pairs])
                made = f"{self._name(question_of)}(opened, {pairs}, {value.metric!r})"
                self.lines.append(f"{name} = {made}")
            case Run():
                folder, hint = _shown(value.folder.with_name(value.title))
                self.lines.append(f"{name} = {self._name(Run)}({folder!r}){hint}")
            case Path():
                self._put_path(name, value)
            case _:
                self.plain.append((name, self._literal(value)))

    def script(self, functions: Iterable[Callable[..., None]]) -> str:
        """The imports, the arguments, and the bodies of the functions."""
        bodies = [self._body(function) for function in functions]
        names, values = (", ".join(pair[at] for pair in self.plain) for at in (0, 1))
        together = f"{names} = {values}"
        if len(together) > WIDTH or "\n" in together:
            self.lines += [f"{name} = {value}" for name, value in self.plain]
        elif self.plain:
            self.lines.append(together)
        made = ["\n".join(self.lines)] if self.lines else []
        return "\n".join([*self._import_lines(), "\n\n".join([*made, *bodies])]) + "\n"

    def _open(self, name: str, folder: Path, reads_prompts: bool) -> None:
        asked = folder, reads_prompts
        if self.opened.get(name) == asked:
            return
        self._put_path("folder", folder)
        how = ", reads_prompts=True" if reads_prompts else ""
        self.lines.append(f"{name} = {self._name(opened_from)}(folder, folder.name{how})")
        self.opened[name] = asked

    def _run(self, name: str, forward: ForwardPass) -> None:
        """Its text is run; the tokens of an earlier argument, where another model read them."""
        for known, other in self.run.items():
            if other is forward:
                self.lines.append(f"{name} = {known}")
                return
        self._open("opened", forward.folder, forward.reads_prompts)
        typed = ", ".join(repr(each) for each in (forward.text, forward.pair) if each)
        call = f"{self._name(run_text)}(opened, {typed})"
        for first, other in self.run.items():
            if _is_given(forward, other):
                rerun_ = self._name(rerun)
                call = f"{rerun_}(opened, {first}, {first}.source, {first}.target, ())"
        self.run[name] = forward
        self.lines.append(f"{name} = {call}")
        if forward.edits:
            edits = self._literal(list(forward.edits))
            self.lines.append(f"{name} = {self._name(run_edited)}(opened, {name}, {edits}).forward")

    def _put_path(self, name: str, folder: Path) -> None:
        shown, hint = _shown(folder)
        self.lines.append(f"{name} = {self._name(Path)}({shown!r}){hint}")

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
        start, end = "[]" if isinstance(value, list) else "{}" if isinstance(value, dict) else "()"
        items = [self._literal(each) for each in value]
        if isinstance(value, dict):
            items = [f"{key!r}: {self._literal(each)}" for key, each in value.items()]
        together = ", ".join(items) + ("," if end == ")" and len(items) == 1 else "")
        if len(together) <= WIDTH:
            return f"{start}{together}{end}"
        return "\n".join([start, *(f"    {each}," for each in items), end])

    def _name(self, value: Callable[..., Any]) -> str:
        """The name of a function or class, which is imported."""
        self.imports.setdefault(value.__module__, set()).add(value.__name__)
        return value.__name__

    def _body(self, function: Callable[..., None]) -> str:
        """The lines of a function below its docstring; what they use is imported as its file does.

        A constant of that file is one more argument.
        """
        source = textwrap.dedent(inspect.getsource(function))
        definition = ast.parse(source).body[0]
        assert isinstance(definition, ast.FunctionDef)
        has_docstring = ast.get_docstring(definition) is not None
        statements = definition.body[1:] if has_docstring else definition.body
        used = {each.id for each in ast.walk(definition) if isinstance(each, ast.Name)}
        module = inspect.getmodule(function)
        assert module is not None
        for each in ast.parse(inspect.getsource(module)).body:
            if isinstance(each, ast.Import | ast.ImportFrom):
                package = (each.module or "") if isinstance(each, ast.ImportFrom) else ""
                names = {name.name for name in each.names} & used
                if names:
                    self.imports.setdefault(package, set()).update(names)
            elif isinstance(each, ast.ClassDef | ast.FunctionDef) and each.name in used:
                self.imports.setdefault(module.__name__, set()).add(each.name)
            elif isinstance(each, ast.Assign) and isinstance(each.targets[0], ast.Name):
                name = each.targets[0].id
                if name in used:
                    self.plain.append((name, self._literal(vars(module)[name])))
        return textwrap.dedent("\n".join(source.splitlines()[statements[0].lineno - 1 :]))

    def _import_lines(self) -> list[str]:
        groups: list[list[str]] = [[], [], []]
        for module, names in sorted(self.imports.items()):
            top = module.partition(".")[0]
            ours, standard = top in ("explorer", "models"), top in sys.stdlib_module_names
            group = groups[2 if ours else 0 if standard else 1]
            if module:
                group.append(f"from {module} import {', '.join(sorted(names))}")
            else:
                groups[1] += [f"import {name}" for name in sorted(names)]
        return [line for group in groups if group for line in (*group, "")]


def _is_given(forward: ForwardPass, first: ForwardPass) -> bool:
    """Whether another model was given the tokens of this pass."""
    tokens = (forward.source, forward.target) == (first.source, first.target)
    return tokens and forward.folder != first.folder and not first.edits


def _shown(folder: Path) -> tuple[str, str]:
    """A folder from where the README is; of one elsewhere only its name, and a comment."""
    if folder.is_relative_to(ROOT):
        return folder.relative_to(ROOT).as_posix(), ""
    return folder.name, "  # put the way to it in front"
