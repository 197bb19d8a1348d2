"""What `verify` found of some files, and how an index is held against the data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import pyarrow as pa

from alcid.errors import AlcidError, ColumnError, FormatError, LimitError, UnsupportedError
from alcid.formats.file_index.column import map_key_column, read_column
from alcid.options import IndexSpec
from alcid.tables.index_check import compare_index
from alcid.tables.verify_report import Example, Findings, IndexCheck
from alcid.types import DataType

__all__ = ["Checked", "value_text"]

_LONGEST_VALUE = 80  # characters of an example


@dataclass(slots=True)
class Checked:
    """What was found of some files."""

    checked: int = 0
    changed: int = 0
    rows: int = 0
    indexes: dict[tuple[str, str], IndexCheck] = field(default_factory=dict)
    findings: Findings = field(default_factory=Findings)
    warnings: Findings = field(default_factory=Findings)

    def index(self, column: str, index_type: str) -> IndexCheck:
        """What was found of an index."""
        return self.indexes.setdefault((column, index_type), IndexCheck(column, index_type))

    def add(self, other: Checked) -> None:
        """Count what was found of later files."""
        self.checked += other.checked
        self.changed += other.changed
        self.rows += other.rows
        for check in other.indexes.values():
            self.index(check.column, check.index_type).add(check)
        self.findings.extend(other.findings.first, other.findings.count)
        self.warnings.extend(other.warnings.first, other.warnings.count)

    def count(self, path: str, column: str, index_type: str, problem: str) -> None:
        """Count a file as sound, or with a problem."""
        check = self.index(column, index_type)
        check.checked += 1
        if problem:
            check.differing += 1
            self.findings.add(path, f"{index_type} of {column!r}", problem)
        else:
            check.sound += 1

    def count_damaged(self, path: str, column: str, index_type: str, error: AlcidError) -> None:
        """Count a file of which something cannot be read."""
        check = self.index(column, index_type)
        check.checked, check.damaged = check.checked + 1, check.damaged + 1
        self.findings.add(path, f"{index_type} of {column!r}", error)

    def compare(
        self,
        path: str,
        column: str,
        spec: IndexSpec,
        stored: bytes,
        rebuilt: bytes | None,
        read: Callable[[], tuple[pa.ChunkedArray, DataType]],
    ) -> None:
        """Count a file by whether its index says what its data says.

        Args:
            path: The file.
            column: What the report calls the column.
            spec: The index, as the file has it.
            stored: Its bytes.
            rebuilt: Those of the index that was built again; None if it could not be.
            read: Gives the column, which is the map for a key of one, and the type of the values;
                it is called where the bytes differ.
        """
        if stored == rebuilt:
            self.count(path, column, spec.index_type, "")
            return
        name = f"{path}: {spec.index_type} of {column!r}"
        try:
            values, data_type = read()
            if spec.map_key is not None:
                values = map_key_column(values, spec.map_key)
            difference = compare_index(
                spec.index_type, stored, read_column(values, data_type), name=name
            )
        except FormatError as error:
            self.count_damaged(path, column, spec.index_type, error)
            return
        except (ColumnError, LimitError, UnsupportedError) as error:
            problem = f"cannot be of this file: {error}"
            self.count(path, column, spec.index_type, problem)
            return
        if difference is None:
            self.count(path, column, spec.index_type, "")
        elif difference.row is None:  # larger than it need be, and right
            check = self.index(column, spec.index_type)
            check.checked, check.differing = check.checked + 1, check.differing + 1
        else:
            self.count(path, column, spec.index_type, str(difference))
            check = self.index(column, spec.index_type)
            check.false_negatives += difference.false_negatives
            check.false_positives += difference.false_positives
            row = difference.row
            value = value_text(values[row]) if row < len(values) else "which there is not"
            check.example = check.example or Example(path, row, value[:_LONGEST_VALUE])


def value_text(value: pa.Scalar) -> str:
    """A value as Python writes it; as SQL does what Python's own times do not reach.

    >>> value_text(pa.scalar("auk")), value_text(pa.scalar(-1, pa.timestamp("ns")))
    ("'auk'", '1969-12-31 23:59:59.999999999')
    """
    if getattr(value.type, "unit", "") != "ns":  # else Arrow asks for pandas
        try:
            return repr(value.as_py())
        except (ValueError, OverflowError):  # a year that Python does not have
            pass
    return str(value.cast(pa.string()).as_py())
