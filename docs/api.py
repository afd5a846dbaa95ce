"""The core's public names, from their docstrings: a block of `api.md`.

A module's own names are public where they have no underscore in front; a method is listed where
it has a docstring. Modules come in the reading order of `models/__init__.py`.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORE = ROOT / "models"
AROUND = ("loading.checkpoint", "loading.export", "families.family", "families.documents")
"""Beside the core: to read and write checkpoints, and what a family is made of."""
LONG = 96
Definition = ast.FunctionDef | ast.ClassDef


def modules() -> list[str]:
    """The core's modules in reading order."""
    front = ast.get_docstring(ast.parse((CORE / "__init__.py").read_text("utf-8"))) or ""
    listed = re.findall(r"^\d+\. ([^:]+):", front, re.MULTILINE)
    return [name for names in listed for name in re.findall(r"`(\w+)`", names)] + [*AROUND]


def reference() -> str:
    """Every module with what it defines."""
    return "\n".join(text for name in modules() for text in module(name))


def module(name: str) -> Iterator[str]:
    tree = ast.parse((CORE / f"{name.replace('.', '/')}.py").read_text("utf-8"))
    yield f"## `models.{name}`\n"
    yield prose(tree)
    for node in tree.body:
        if isinstance(node, Definition) and node.name[0] != "_" and ast.get_docstring(node):
            yield f"### `{name.split('.')[-1]}.{node.name}`\n"
            yield entry(node)
            for method in node.body if isinstance(node, ast.ClassDef) else ():
                if isinstance(method, ast.FunctionDef) and is_told(method):
                    yield f"**`{node.name}.{method.name}`**\n"
                    yield entry(method)


def is_told(method: ast.FunctionDef) -> bool:
    return method.name[0] != "_" and ast.get_docstring(method) is not None


def entry(node: Definition) -> str:
    """How it is called, and its docstring."""
    return f"```text\n{signature(node)}\n```\n\n{prose(node)}"


def prose(node: ast.Module | Definition) -> str:
    return f"{ast.get_docstring(node) or ''}\n"


def signature(node: Definition) -> str:
    """One line, or one for each argument; of a class, what it is made with."""
    if isinstance(node, ast.FunctionDef):
        result = f" -> {unquoted(node.returns)}" if node.returns else ""
        return called(node.name, arguments(node), result)
    made = [each for each in node.body if isinstance(each, ast.FunctionDef)]
    init = [each for each in made if each.name == "__init__"]
    if init:
        return called(node.name, arguments(init[0]))
    fields = [field(each) for each in node.body if isinstance(each, ast.AnnAssign)]
    is_data = any("dataclass" in ast.unparse(each) for each in node.decorator_list)
    kinds = {ast.unparse(base) for base in node.bases}
    if is_data or "NamedTuple" in kinds:
        return called(node.name, fields)
    return f"class {node.name}" + (f"({', '.join(sorted(kinds))})" if kinds else "")


def called(name: str, given: list[str], result: str = "") -> str:
    line = f"{name}({', '.join(given)}){result}"
    if len(line) <= LONG:
        return line
    return f"{name}(\n" + "".join(f"    {each},\n" for each in given) + f"){result}"


def arguments(node: ast.FunctionDef) -> list[str]:
    """As they are written, without `self`."""
    given = node.args
    plain = [*given.posonlyargs, *given.args]
    defaults: list[ast.expr | None] = [None] * (len(plain) - len(given.defaults))
    names = [*zip(plain, [*defaults, *given.defaults], strict=True)]
    found = [argument(each, default) for each, default in names if each.arg not in ("self", "cls")]
    if given.vararg:
        found.append("*" + argument(given.vararg, None))
    elif given.kwonlyargs:
        found.append("*")
    found += [argument(*pair) for pair in zip(given.kwonlyargs, given.kw_defaults, strict=True)]
    return found + (["**" + argument(given.kwarg, None)] if given.kwarg else [])


def argument(given: ast.arg, default: ast.expr | None) -> str:
    kind = f": {unquoted(given.annotation)}" if given.annotation else ""
    if default is None:
        return given.arg + kind
    return (
        f"{given.arg}{kind} = {ast.unparse(default)}"
        if kind
        else f"{given.arg}={ast.unparse(default)}"
    )


def field(node: ast.AnnAssign) -> str:
    default = f" = {ast.unparse(node.value)}" if node.value is not None else ""
    return f"{ast.unparse(node.target)}: {unquoted(node.annotation)}{default}"


def unquoted(annotation: ast.expr) -> str:
    """The type as it reads; the shape of a tensor keeps its quotes."""
    text = ast.unparse(annotation)
    return text[1:-1] if re.fullmatch(r"'[\w.\[\]| ]+'", text) else text
