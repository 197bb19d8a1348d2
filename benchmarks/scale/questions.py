"""What is asked of tables of many files, and which files must be left for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from alcid.formats.file_index import READERS
from alcid.formats.file_index.keys import key_type
from alcid.formats.source import BytesSource, Section
from alcid.index.bundle import PayloadKind
from alcid.scan import Explanation
from alcid.types import DataType
from benchmarks.scale.files import BLOOM, FIELDS, ROWS, ManyFiles

__all__ = ["Question", "expected_files", "left_files", "questions"]

_BITMAP = PayloadKind.index("class_id", "bitmap")
_CLASS = 437
_RANGE = 50  # files that a range is as long as


@dataclass(frozen=True, slots=True)
class Question:
    """A query, as `scan` takes it."""

    name: str
    """What it looks for, and by what."""
    query: Mapping[str, Any]


def questions(count: int) -> tuple[Question, ...]:
    """The questions to a table of so many files."""
    first = count // 2 * ROWS + ROWS // 2
    between = f"at BETWEEN {first} AND {first + _RANGE * ROWS}"
    return (
        Question("id, bloom filter", {"where": f"id = {_wanted(count)}"}),
        Question("class, bitmap", {"where": f"class_id = {_CLASS}"}),
        Question("range, bounds", {"where": between}),
        Question("top 10, range-bitmap", {"order_by": "score DESC", "limit": 10}),
    )


def expected_files(files: ManyFiles) -> dict[str, list[int]]:
    """The numbers of the files that are left, by asking each of them alone."""
    point, category, between, top = (one.name for one in questions(files.count))
    found: dict[str, list[int]] = {point: [], category: []}
    for number, one in enumerate(files.indexed()):
        for name, kind, key in ((point, BLOOM, _wanted(files.count)), (category, _BITMAP, _CLASS)):
            if _may_have(one.payloads[kind] or b"", kind, key):
                found[name].append(number)
    first, patterns = files.count // 2, len(files.patterns)
    found[between] = list(range(first, first + _RANGE + 1))
    found[top] = list(range(patterns - 1, files.count, patterns))
    return found


def left_files(explanation: Explanation) -> list[int]:
    """The numbers of the files that a scan reads."""
    outcomes = explanation.outcomes
    assert outcomes is not None
    left = (one.path for one in outcomes if one.outcome.stage == "read")
    return sorted(int(PurePath(path).stem.rpartition("-")[2]) for path in left)


def _wanted(count: int) -> int:
    """An id in the midst of all, so that bounds leave every file."""
    return ROWS // 2 * count + count // 3


def _may_have(payload: bytes, kind: PayloadKind, key: int) -> bool:
    section = Section(BytesSource(payload), 0, len(payload))
    reader = READERS[kind.index_type](section, key_type(DataType.parse(FIELDS[kind.column])))
    return not reader.is_in([key]).skip
