"""ARCHITECTURE.md describes the current code."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "ARCHITECTURE.md").read_text("utf-8")
SOURCE = "\n".join(path.read_text("utf-8") for path in (ROOT / "src" / "alcid").rglob("*.py"))
PATHS = {
    str(path.relative_to(ROOT)) for path in ROOT.glob("[a-z]*/**/*") if "__py" not in str(path)
}


def _quoted(pattern: str) -> list[str]:
    return sorted(set(re.findall(f"`({pattern})`", TEXT)))


def test_page_stays_short() -> None:
    assert TEXT.count("\n") < 300


@pytest.mark.parametrize("path", _quoted(r"[a-z_/]+(?:\.py|/)"))
def test_path_exists(path: str) -> None:
    ending = "/" + path.rstrip("/")
    assert path == "_alcid/" or any(f"/{existing}".endswith(ending) for existing in PATHS)


@pytest.mark.parametrize("name", _quoted(r"[A-Za-z_]+(?:\.(?!py\b|toml\b)[a-z_]+)?"))
def test_name_is_defined(name: str) -> None:
    """A class, a function, a constant, a field, a module or an argument of the package."""
    last = name.rpartition(".")[2]
    definition = rf"(?:class|def) {last}\b|^ *{last}\b *[:=]|[./]{last}\b"
    assert re.search(definition, SOURCE, re.MULTILINE)
