"""The page of all public names is up to date with their docstrings."""

from __future__ import annotations

import alcid
from tests.make_python_reference import GROUPS, PAGE, python_reference


def test_every_public_name_is_in_one_group() -> None:
    named = [name for group in GROUPS for name in group.names]
    assert sorted(named) == sorted(alcid.__all__)


def test_page_is_what_the_docstrings_say_now() -> None:
    """If it is not: python -m tests.make_python_reference."""
    assert PAGE.read_text("utf-8") == python_reference()
