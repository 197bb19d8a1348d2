"""What a case consists of, and a case as one line of text."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from alcid.types import DataType, indexes_for
from tests.cross.pairwise import Combination

__all__ = ["FACTORS", "TABLE", "WAYS", "Case", "draw", "iceberg_type", "is_allowed", "kinds_of"]

TYPES: Final = (
    *("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE"),
    *("DECIMAL(9, 2)", "DECIMAL(18, 4)", "DECIMAL(38, 10)"),
    *("CHAR(4)", "VARCHAR(9)", "STRING", "BINARY(3)", "BYTES"),
    *("DATE", "TIME(3)", "TIMESTAMP(0)", "TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(9)"),
    *("TIMESTAMP_LTZ(3)", "TIMESTAMP_LTZ(6)", "TIMESTAMP_LTZ(9)"),
)
TABLE: Final[dict[str, tuple[str, ...]]] = {
    "kind": ("folder", "append", "keyed", "iceberg"),
    "index": ("none", "bloom-filter", "bitmap-1", "bitmap-2", "range-bitmap", "bsi", "several"),
    "type": TYPES,
    "nulls": ("none", "some", "all"),
    "deletions": ("none", "32", "64", "positions"),
    "groups": ("one", "several", "single rows"),
    "pages": ("one", "small", "single rows"),
    "page index": ("yes", "no"),
    "partition": ("none", "some", "null"),
}
"""The factors of a table."""
WAYS: Final = ("indexes", "plain", "count", "plain count", "explain", "rows explained")
FACTORS: Final[dict[str, tuple[str, ...]]] = {
    **TABLE,
    "shape": (
        *("none", "=", "<>", "<=>", "<", "BETWEEN", "IN", "NOT IN", "IS NULL", "IS NOT NULL"),
        *("LIKE", "AND", "OR", "NOT", "two columns"),
    ),
    "order": (
        *("none", "limit", "sorted", "ASC NULLS FIRST", "ASC NULLS LAST", "DESC NULLS FIRST"),
        *("DESC NULLS LAST", "two keys"),
    ),
    "costs": ("as they are", "indexes", "pages", "search"),
    "way": WAYS,
}

_ICEBERG: Final = {
    DataType.parse(ours): theirs
    for ours, theirs in (
        *(("BOOLEAN", "boolean"), ("INT", "int"), ("BIGINT", "long"), ("FLOAT", "float")),
        *(("DOUBLE", "double"), ("STRING", "string"), ("BYTES", "binary"), ("DATE", "date")),
        *(("TIMESTAMP(6)", "timestamp"), ("TIMESTAMP_LTZ(6)", "timestamptz")),
    )
}


@dataclass(frozen=True)
class Case:
    """One question to one table, asked in one way.

    >>> case = Case({"kind": "folder", "type": "DECIMAL(9, 2)"}, 7, 8)
    >>> print(case)
    kind=folder; type=DECIMAL(9, 2); table=7; question=8
    >>> Case.parse(str(case)) == case
    True
    """

    levels: Combination
    table: int
    """The seed for everything else in the table; used together with the levels of `TABLE`."""
    question: int
    """The seed for everything else in the question; it depends on the values of the table."""

    def __getitem__(self, factor: str) -> str:
        return self.levels[factor]

    def __str__(self) -> str:
        parts = {**self.levels, "table": self.table, "question": self.question}
        return "; ".join(f"{name}={level}" for name, level in parts.items())

    @classmethod
    def parse(cls, text: str) -> Case:
        parts = dict(part.strip().split("=", 1) for part in text.split(";"))
        table, question = int(parts.pop("table")), int(parts.pop("question"))
        return cls(parts, table, question)


@cache
def is_text(type_text: str) -> bool:
    return DataType.parse(type_text).root in ("CHAR", "VARCHAR")


def iceberg_type(data_type: DataType) -> str | None:
    """The name of a type in Iceberg, if it has one."""
    return str(data_type).lower() if data_type.root == "DECIMAL" else _ICEBERG.get(data_type)


@cache
def kinds_of(type_text: str) -> tuple[str, ...]:
    """The kinds of table that can store a type unchanged."""
    data_type = DataType.parse(type_text)
    kinds = ["append", "keyed"]
    if DataType.from_arrow(data_type.to_arrow()) == data_type:  # all that a Parquet file says
        kinds.append("folder")
    if iceberg_type(data_type) is not None:
        kinds.append("iceberg")
    return tuple(kinds)


def is_allowed(levels: Mapping[str, str]) -> bool:
    """Whether a combination of levels, or a part of one, is possible."""
    kind, type_text = levels.get("kind"), levels.get("type")
    if kind is not None and type_text is not None and kind not in kinds_of(type_text):
        return False
    if type_text is not None and not _takes(levels.get("index", "none"), type_text):
        return False
    if levels.get("shape") == "LIKE" and type_text is not None and not is_text(type_text):
        return False
    if kind == "keyed" and levels.get("partition") == "null":  # a column of the key
        return False
    deletions = levels.get("deletions", "none")
    if deletions == "none" or kind is None:
        return True
    return deletions in (("64", "positions") if kind == "iceberg" else ("32", "64"))


@cache
def _takes(index: str, type_text: str) -> bool:
    taken = indexes_for(DataType.parse(type_text))
    if index == "several":
        return len(taken) > 1
    return index == "none" or index.removesuffix("-1").removesuffix("-2") in taken


def draw(
    factors: Mapping[str, tuple[str, ...]], source: random.Random, **fixed: str
) -> Combination:
    """Any allowed combination."""
    while True:
        levels = {name: source.choice(levels) for name, levels in factors.items()} | fixed
        if is_allowed(levels):
            return levels
