"""The table of README.md names every item, and exactly the existing tests."""

from __future__ import annotations

import ast
import re
from pathlib import Path

FOLDER = Path(__file__).parent
ITEMS = 62


def table_rows() -> list[list[str]]:
    """The cells of the table: item, issues, what went wrong, tests."""
    lines = (FOLDER / "README.md").read_text("utf-8").splitlines()
    rows = [line.strip("|").split(" | ") for line in lines if re.match(r"\| \d", line)]
    return [[cell.strip() for cell in row] for row in rows]


def docstrings_of_tests() -> dict[str, str]:
    """The docstrings of all tests, by their names."""
    functions = [
        node
        for path in sorted(FOLDER.glob("test_*.py"))
        if path != Path(__file__)
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    assert len({node.name for node in functions}) == len(functions)
    return {node.name: ast.get_docstring(node) or "" for node in functions}


def test_each_item_has_one_row() -> None:
    rows = table_rows()
    assert [int(row[0]) for row in rows] == list(range(1, ITEMS + 1))
    assert {len(row) for row in rows} == {4}
    assert all(all(row) for row in rows)


def test_the_tests_of_the_table_are_those_there_are() -> None:
    named = [name for row in table_rows() for name in re.findall("`(test_[a-z0-9_]+)`", row[3])]
    assert sorted(named) == sorted(docstrings_of_tests())


def test_tests_are_named_after_an_issue_of_their_row() -> None:
    for _, issues, _, last in table_rows():
        begins = [
            f"test_{re.sub('[^a-z0-9]+', '_', issue.lower())}_" for issue in issues.split(", ")
        ]
        for name in re.findall("`(test_[a-z0-9_]+)`", last):
            assert name.startswith(tuple(begins)), name


def test_each_test_says_in_a_line_what_went_wrong() -> None:
    for name, text in docstrings_of_tests().items():
        assert re.fullmatch(r"[A-Z`].*\.", text), name
