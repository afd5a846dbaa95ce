"""SECURITY.md is the threat model: each line of its table names a test, and the test exists."""

import ast
import re

from tests.source import ROOT

PAGE = ROOT / "SECURITY.md"


def rows() -> list[list[str]]:
    """The cells of each line of the tables, without their heads."""
    lines = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| ")]
    table = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines]
    return [cells for cells in table if cells[-1] != "Test"]


def defined(path: str) -> set[str]:
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_each_line_of_the_threat_model_names_tests_that_exist() -> None:
    assert rows()
    for _, _, tests in rows():
        named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", tests)
        assert named, tests
        assert [f"{path}::{name}" for path, name in named if name not in defined(path)] == []


def test_it_links_to_files_that_exist() -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)\)", PAGE.read_text("utf-8"))
    assert [target for target in targets if not (ROOT / target).is_file()] == []
