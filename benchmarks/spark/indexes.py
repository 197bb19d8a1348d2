"""The indexes that are built, and how fast that shall be. They lie apart from those of others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["ASKED", "INDEX_SETS", "IndexSet"]


@dataclass(frozen=True, slots=True)
class IndexSet:
    """Indexes that are built together."""

    name: str
    meaning: str
    options: Mapping[str, str]
    aim: float
    """Million rows a second and core."""


_EQUALITY = {"file-index.bloom-filter.columns": "id", "file-index.bitmap.columns": "class_id"}
_RANGE = "file-index.range-bitmap.columns"

ASKED = IndexSet(
    "wide",
    "bloom-filter id, bitmap class_id, range-bitmap score and user_id",
    _EQUALITY | {_RANGE: "score,user_id"},
    1.5,
)
"""Those that questions are asked with: two columns have a value for almost every row."""

_NARROW = IndexSet(
    "narrow",
    "bloom-filter id, bitmap class_id, range-bitmap class_id",
    _EQUALITY | {_RANGE: "class_id"},
    3.0,
)

INDEX_SETS = {each.name: each for each in (ASKED, _NARROW)}
