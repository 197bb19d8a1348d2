"""Whether delete files in Parquet are what the manifests of an Iceberg table say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from alcid.errors import FileGoneError, FormatError, LimitError, UnsupportedError
from alcid.iceberg_metadata.entries import EQUALITY_DELETES
from alcid.iceberg_metadata.schema import Field
from alcid.parquet_file import ParquetScan, open_scan
from alcid.tables.checked import Checked
from alcid.tables.iceberg.checked_snapshot import GONE, CheckedSnapshot
from alcid.tables.iceberg.equality_deletes import read_keys
from alcid.tables.iceberg.position_deletes import read_positions

__all__ = ["DeleteFileCheck", "delete_files"]


@dataclass(frozen=True, slots=True)
class DeleteFileCheck:
    """A file of positions, or of equality deletes, to be read."""

    path: str
    size: int
    """As the manifest says."""
    rows: int
    """As the manifest says."""
    field_ids: tuple[int, ...] | None
    """The columns of equality deletes; None for a file of positions."""

    def run(self, snapshot: CheckedSnapshot) -> Checked:
        """Read it, and compare."""
        found, what = Checked(), "positions" if self.field_ids is None else "equality deletes"
        try:
            scan = open_scan(snapshot.open(self.path, self.size, found))
            if (rows := sum(scan.group_rows)) != self.rows:
                problem = f"found {rows:,}, the manifest says {self.rows:,}"
                found.findings.add(self.path, "rows", problem)
            if self.field_ids is None:
                self._look_at_positions(scan, snapshot.rows, found)
            else:
                read_keys(scan, _fields(self.field_ids, snapshot.fields, self.path))
        except FileGoneError:
            found.findings.add(self.path, what, GONE)
        except UnsupportedError as error:
            found.warnings.add(self.path, what, error)
        except (FormatError, LimitError) as error:
            found.findings.add(self.path, what, error)
        return found

    def _look_at_positions(
        self, scan: ParquetScan, rows: Mapping[str, int], found: Checked
    ) -> None:
        paths = list(rows)
        deleted = read_positions(scan, {path: number for number, path in enumerate(paths)})
        for number, vector in sorted(deleted.items()):
            path = paths[number]
            if vector.last is not None and vector.last >= rows[path]:
                problem = f"position {vector.last} of a file of {rows[path]:,} rows"
                found.findings.add(self.path, f"positions of {path}", problem)


def _fields(ids: Iterable[int], known: Mapping[int, Field], path: str) -> list[Field]:
    """The columns of equality deletes, which the table must have had."""
    unknown = [number for number in ids if number not in known]
    if unknown:
        raise FormatError("no such column in any schema", file=path, found=f"field {unknown[0]}")
    fields = [known[number] for number in ids]
    for field in fields:
        if field.data_type is None:
            raise UnsupportedError(f"{path}: column {field.name}: {field.problem}")
    return fields


def delete_files(deletes: pa.Table) -> Iterator[DeleteFileCheck]:
    """What to check, given the delete entries of Parquet files."""
    for entry in deletes.to_pylist():
        is_equality = entry["content"] == EQUALITY_DELETES
        yield DeleteFileCheck(
            entry["file_path"],
            entry["file_size_in_bytes"],
            entry["record_count"],
            tuple(entry["equality_ids"] or ()) if is_equality else None,
        )
