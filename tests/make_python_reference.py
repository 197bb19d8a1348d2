"""Write docs/reference/python.md: every public name of `alcid`, in one line of its docstring.

python -m tests.make_python_reference
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import alcid

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "python.md"

_HEAD = (
    "# Python\n\nWith this page you can find the name that you need. It is made from docstrings by "
    "`python -m tests.make_python_reference`, and a test sees that no name is missing. "
    "`help(alcid.paimon)` in Python tells all of a name: arguments, errors, an example.\n\n"
    "What stands here is public; every module and method that does not may change without notice.\n"
)
_METHODS = """
## Methods of tables

| method | folder | Paimon | Iceberg | |
|---|---|---|---|---|
"""


@dataclass(frozen=True)
class Group:
    heading: str
    more: str
    """The page that describes it."""
    names: tuple[str, ...]


GROUPS = (
    Group(
        "Open and make tables",
        "[folders](../tables/parquet-folders.md), [Paimon](../tables/paimon-tables.md), "
        "[Iceberg](../tables/iceberg-tables.md)",
        ("table", "parquet", "paimon", "iceberg", "create_table"),
    ),
    Group(
        "Spark",
        "[using Spark](../spark/spark.md)",
        ("session", "sql", "explain_sql", "register", "upsert_sink"),
    ),
    Group(
        "Tables",
        "methods of each below",
        ("ParquetTable", "PaimonTable", "IcebergTable"),
    ),
    Group(
        "Predicates and types",
        "[predicates](../questions/predicates.md), [types](../questions/types.md)",
        ("col", "Column", "Predicate", "DataType", "options", "config"),
    ),
    Group(
        "The indexes of one file",
        "[the indexes of one file](../indexes/file-index.md)",
        ("FileIndex", "Selection"),
    ),
    Group(
        "Deletion vectors",
        "[deletion vectors](../indexes/deletion-vectors.md)",
        ("DeletionVector", "DeletionVectorFile", "DeletionVectorRange"),
    ),
    Group(
        "Keys and buckets",
        "[hash index and dynamic buckets](../indexes/dynamic-buckets.md)",
        (
            "hash_rows",
            "binary_rows",
            "fixed_bucket",
            "HashIndex",
            "BucketAssigner",
            "BucketOptions",
            "Routing",
        ),
    ),
    Group(
        "Puffin and sketches",
        "[Puffin files](puffin.md), [theta sketches](../indexes/theta-sketches.md)",
        ("puffin", "ThetaSketch"),
    ),
    Group(
        "Pages and notebooks",
        "`alcid.inspect.to_html` and `save_html`; a notebook shows the same by itself",
        ("inspect",),
    ),
    Group(
        "Errors and warnings",
        "each is caught by `AlcidError` or `AlcidWarning`",
        (
            "errors",
            "AlcidError",
            "FormatError",
            "ChecksumError",
            "LimitError",
            "UnsupportedError",
            "OptionError",
            "ColumnError",
            "PredicateError",
            "SparkNeededError",
            "EvaluationError",
            "LiteralError",
            "StorageError",
            "FileGoneError",
            "NameTakenError",
            "ConflictError",
            "AlcidWarning",
            "DamagedIndexWarning",
        ),
    ),
)
TABLES = ("ParquetTable", "PaimonTable", "IcebergTable")
WITHIN = {
    "apart",
    "bundle_folder",
    "committer",
    "is_past",
    "note_commit",
    "require_present",
    "tidy",
    "with_level_zero",
}
"""What modules of tables call in each other."""


def python_reference() -> str:
    parts = [_HEAD]
    for group in GROUPS:
        parts.append(f"\n## {group.heading}\n\nMore: {group.more}.\n\n| name | |\n|---|---|\n")
        parts += [f"| `{name}` | {summary(getattr(alcid, name))} |\n" for name in group.names]
    parts.append(_METHODS)
    parts += methods()
    return "".join(parts)


def methods() -> Iterator[str]:
    kinds = [getattr(alcid, name) for name in TABLES]
    for name in sorted({name for kind in kinds for name in dir(kind) if name[0] != "_"} - WITHIN):
        attributes = [getattr(kind, name, None) for kind in kinds]
        marks = " | ".join("yes" if function is not None else "" for function in attributes)
        first = next(function for function in attributes if function is not None)
        call = "" if isinstance(first, property) else "()"
        yield f"| `{name}{call}` | {marks} | {summary(first)} |\n"


def summary(named: Any) -> str:
    """The first sentence of a docstring, for a cell of a table."""
    text = inspect.getdoc(named)
    assert text, named
    return " ".join(text.split("\n\n")[0].split()).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(python_reference(), "utf-8")
