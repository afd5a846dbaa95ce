"""How the tests check the types and shapes written in `models`.

jaxtyping's own import hook makes the check of every function at import, and that of a function
within another at every call of it; here a check is made when it is first needed.
"""

import ast
import sys
from collections.abc import Callable, Sequence
from functools import cache, wraps
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import ParamSpec, TypeVar

from beartype import BeartypeConf, beartype
from jaxtyping import jaxtyped

AS_TYPED = BeartypeConf(is_pep484_tower=True)
"""An int passes for a float, as it does for every static checker."""
JUDGED_BY_FAULT = ("TransformerConfig.__init__", "TrainConfig.__init__")
"""Settings may be made of anything: their `fault()` says in words what is wrong with them."""

P = ParamSpec("P")
R = TypeVar("R")

is_on = False
"""Whether calls are checked now."""


def check(function: Callable[P, R]) -> Callable[P, R]:
    """The function; while `is_on`, its inputs and its result are those of its annotations."""
    name = function.__qualname__
    if name in JUDGED_BY_FAULT or ("<locals>" in name and not is_on):
        return function

    @cache
    def checked() -> Callable[P, R]:
        return jaxtyped(typechecker=beartype(conf=AS_TYPED))(function)

    @wraps(function)
    def check_and_call(*inputs: P.args, **options: P.kwargs) -> R:
        return (checked() if is_on else function)(*inputs, **options)

    return check_and_call


def check_fields(made: type) -> type:
    """The class; where it is a dataclass, its fields are checked as inputs are."""
    if "__dataclass_fields__" in vars(made):
        made.__init__ = check(made.__init__)  # type: ignore[misc]
    return made


class Loader(SourceFileLoader):
    """Decorates every function and class of a module, and keeps no bytecode of that."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        tree = ast.parse(self.get_data(path), path)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                node.decorator_list.append(_decorator("check", node))
            elif isinstance(node, ast.ClassDef):
                node.decorator_list.insert(0, _decorator("check_fields", node))
        return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)


def _decorator(name: str, node: ast.AST) -> ast.expr:
    here = f"__import__('sys').modules[{__name__!r}].{name}"
    return ast.copy_location(ast.parse(here, mode="eval").body, node)


class Finder:
    """Finds the modules of `models`."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.partition(".")[0] != "models":
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = Loader(spec.loader.name, spec.loader.path)
        return spec


def install() -> None:
    """What is imported of `models` from now on can be checked."""
    sys.meta_path.insert(0, Finder)
