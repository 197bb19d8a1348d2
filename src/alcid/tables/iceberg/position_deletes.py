"""The positions of deleted rows: of vectors, and of Parquet files with a row for each of them.

| column      | field id   | what                                                              |
|-------------|------------|-------------------------------------------------------------------|
| `file_path` | 2147483546 | the data file, as its manifest has it                             |
| `pos`       | 2147483545 | the position of the row in it, from 0                             |

A third column may hold the rows themselves, which nobody needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa

from alcid.errors import FormatError
from alcid.formats.arrays import plain, split_by
from alcid.formats.deletion_vector import DeletionVector
from alcid.formats.source import ReadMany, read_each
from alcid.iceberg_metadata.entries import Entries
from alcid.parquet_file import ParquetScan
from alcid.plan.threads import wait_for_each
from alcid.tables.iceberg.delete_entries import open_deletes, stored_vectors
from alcid.tables.iceberg.delete_plan import PATH_FIELD, DeletePlan
from alcid.tables.iceberg.id_columns import read_columns
from alcid.tables.iceberg.places import Places
from alcid.tables.iceberg.vectors_file import read_vectors

__all__ = ["Positions", "read_positions"]

_POSITION_FIELD: Final = 2147483545
_COLUMNS: Final = {PATH_FIELD: pa.string(), _POSITION_FIELD: pa.int64()}


def read_positions(
    scan: ParquetScan, files: Mapping[str, int], *, read_ranges: ReadMany = read_each
) -> dict[int, DeletionVector]:
    """The deleted rows of data files, by their numbers.

    Args:
        scan: The delete file.
        files: The numbers of data files, by their paths; rows of others are passed over.
        read_ranges: Reads it.

    Raises:
        FormatError: It is damaged, or has a row without path or position.
    """
    found: dict[int, DeletionVector] = {}
    for group, rows in enumerate(scan.group_rows):
        if not rows:
            continue
        paths, positions = map(plain, read_columns(scan, _COLUMNS, read_ranges, [group]))
        if paths.null_count or positions.null_count:
            raise FormatError(
                f"row group {group} of a file of positions",
                file=scan.source.name,
                found="null",
                expected="a path and a position in each row",
            )
        coded = paths.dictionary_encode()
        known = [files.get(path, -1) for path in coded.dictionary.to_pylist()]
        numbers = np.array(known, np.int64)[coded.indices.to_numpy()]
        values = positions.to_numpy()
        if values.min() < 0:
            raise FormatError(
                "position of a deleted row",
                file=scan.source.name,
                found=values.min(),
                expected="0 or more",
            )
        order = np.argsort(numbers, kind="stable")
        order = order[np.searchsorted(numbers[order], 0) :]
        for some in split_by(order, numbers[order]) if len(order) else ():
            file, more = int(numbers[some[0]]), DeletionVector(values[some])
            found[file] = found[file] | more if file in found else more
    return found


class Positions:
    """The positions that vectors and delete files have, of data files by their numbers."""

    def __init__(self, entries: Entries, plan: DeletePlan, places: Places, *, remote: bool) -> None:
        """Read nothing yet."""
        self._data, self._deletes, self._plan = entries.data, entries.deletes, plan
        self._places, self._remote = places, remote
        self._rows: list[int] = entries.data["record_count"].to_pylist()
        self._of_delete_file: dict[int, dict[int, DeletionVector]] = {}
        self._known: dict[int, DeletionVector] = {}

    def load(self, files: Iterable[int]) -> None:
        """Read what some data files need: vectors in one round, then delete files, each once.

        Raises:
            FormatError: A delete file is damaged, or has a position beyond its data file.
        """
        missing = [file for file in files if file not in self._known]
        vectors = {file: row for file in missing if (row := self._plan.vector(file)) is not None}
        rows = [self._rows[file] for file in vectors]
        stored = stored_vectors(self._deletes, list(vectors.values()), rows)
        self._known.update(zip(vectors, read_vectors(self._places, stored), strict=True))
        others = [file for file in missing if file not in vectors]
        self._read_files([row for file in others for row in self._plan.positions(file)])
        self._known.update((file, self._union(file)) for file in others)

    def __getitem__(self, file: int) -> DeletionVector:
        """Those of a data file that is loaded."""
        return self._known[file]

    @cached_property
    def _numbers(self) -> dict[str, int]:
        """The numbers of data files, by their paths."""
        return {path: file for file, path in enumerate(self._data["file_path"].to_pylist())}

    def _read_files(self, rows: Sequence[int]) -> None:
        missing = [row for row in dict.fromkeys(rows) if row not in self._of_delete_file]

        def read(scan: ParquetScan) -> dict[int, DeletionVector]:
            return read_positions(scan, self._numbers, read_ranges=self._places.read_ranges)

        scans = open_deletes(self._places, self._deletes, missing)
        every = wait_for_each(read, scans, remote=self._remote)
        self._of_delete_file.update(zip(missing, every, strict=True))

    def _union(self, file: int) -> DeletionVector:
        """What the delete files that apply say of a data file."""
        found = DeletionVector()
        for row in self._plan.positions(file):
            more = self._of_delete_file[row].get(file, DeletionVector())
            if more.last is not None and more.last >= self._rows[file]:
                raise FormatError(
                    f"deleted row of {self._data['file_path'][file]}",
                    file=self._deletes["file_path"][row].as_py(),
                    found=more.last,
                    expected=f"below {self._rows[file]}",
                )
            found |= more
        return found
