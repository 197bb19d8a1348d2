"""Which delete files apply to which data files, by the manifests alone.

| delete file                | applies to a data file                                              |
|----------------------------|---------------------------------------------------------------------|
| deletion vector            | that it names; position deletes of this data file then do not count |
| positions of one data file | that it names, if the data file is not newer                        |
| positions of a partition   | of the same spec and partition, if the data file is not newer       |
| equality deletes           | of the same spec and partition, if the data file is older           |
| those of no partition      | any that is older                                                   |

How old a file is, its sequence number tells.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alcid.errors import FormatError
from alcid.iceberg_metadata.entries import EQUALITY_DELETES, Entries
from alcid.iceberg_metadata.partition_spec import VOID, PartitionSpec
from alcid.tables.iceberg.delete_entries import PUFFIN
from alcid.tables.paimon.key_order import rank_rows

__all__ = ["PATH_FIELD", "PUFFIN", "DeletePlan"]

Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

PATH_FIELD = 2147483546
"""The id of `file_path`, a column of files with positions."""


class DeletePlan:
    """What applies to each data file; files are numbers, and delete files are rows of entries."""

    def __init__(self, entries: Entries, specs: Mapping[int, PartitionSpec]) -> None:
        """Look at the entries of a snapshot; no file is opened.

        Raises:
            FormatError: A vector is not whole.
        """
        self._data, self._deletes, self._specs = entries.data, entries.deletes, specs
        self._ages = _numbers(entries.data, "sequence_number")
        self._delete_ages = _numbers(entries.deletes, "sequence_number")
        formats = pc.utf8_upper(entries.deletes["file_format"])
        is_vector = _mask(pc.equal(formats, PUFFIN))
        is_equality = _numbers(entries.deletes, "content") == EQUALITY_DELETES
        is_position = ~is_vector & ~is_equality
        named = self._named_files()
        # What names a file that is not there any more deletes nothing.
        targets = pc.index_in(named, value_set=entries.data["file_path"].chunk(0))
        self._targets: Integers = targets.fill_null(-1).to_numpy().astype(np.int64)
        has_name = _mask(named.is_valid())
        self._twice: dict[int, FormatError] = {}
        self._vectors = self._vector_places(np.flatnonzero(is_vector), has_name)
        self._of_file = self._by_file(np.flatnonzero(is_position & has_name))
        is_global = np.isin(_numbers(entries.deletes, "spec_id"), self._unpartitioned())
        self._global = np.flatnonzero(is_equality & is_global)
        self._in_partition = np.flatnonzero(is_position & ~has_name)
        self._equal_in_partition = np.flatnonzero(is_equality & ~is_global)

    @cached_property
    def files(self) -> Integers:
        """The data files of which rows may be deleted, ascending."""
        found = np.zeros(len(self._ages), bool)
        found[[*self._vectors, *self._of_file]] = True
        if len(self._global):
            found |= self._ages < self._delete_ages[self._global].max()
        for rows, oldest in (self._in_partition, 0), (self._equal_in_partition, 1):
            if len(rows):
                data, deletes = self._partitions
                newest = np.full(int(max(data.max(initial=0), deletes.max())) + 1, -1, np.int64)
                np.maximum.at(newest, deletes[rows], self._delete_ages[rows])
                found |= self._ages + oldest <= newest[data]
        return np.flatnonzero(found)

    def vector(self, file: int) -> int | None:
        """The deletion vector of a data file.

        Raises:
            FormatError: It has two of them: nobody knows which one holds.
        """
        if file in self._twice:
            raise self._twice[file]
        return self._vectors.get(file)

    def positions(self, file: int) -> list[int]:
        """The files with positions that apply to a data file: none, if it has a vector."""
        if file in self._vectors:
            return []
        return [*self.own_positions(file), *self._nearby(file, self._partition_positions, 0)]

    def own_positions(self, file: int) -> list[int]:
        """Those with positions of this data file alone, whether it has a vector or not."""
        return self._of_file.get(file, [])

    def equality(self, file: int) -> list[int]:
        """The equality deletes that apply to a data file."""
        everywhere = self._global[self._delete_ages[self._global] > self._ages[file]]
        return [*everywhere.tolist(), *self._nearby(file, self._partition_equality, 1)]

    def _nearby(
        self, file: int, by_partition: Mapping[int, Sequence[int]], older: int
    ) -> list[int]:
        if not by_partition:
            return []
        some = by_partition.get(int(self._partitions[0][file]), ())
        return [row for row in some if self._ages[file] + older <= self._delete_ages[row]]

    @cached_property
    def _partition_positions(self) -> dict[int, list[int]]:
        return self._by_partition(self._in_partition)

    @cached_property
    def _partition_equality(self) -> dict[int, list[int]]:
        return self._by_partition(self._equal_in_partition)

    def _by_partition(self, rows: Integers) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for row in rows.tolist():
            found.setdefault(int(self._partitions[1][row]), []).append(row)
        return found

    @cached_property
    def _partitions(self) -> tuple[Integers, Integers]:
        """The partition of each data file and of each delete file, as numbers."""
        both = pa.concat_tables(
            [one.select(["spec_id", "partition"]) for one in (self._data, self._deletes)]
        )
        partitions = both["partition"].combine_chunks()
        if isinstance(partitions, pa.ChunkedArray):
            partitions = pa.concat_arrays(partitions.chunks)
        numbers = rank_rows([both["spec_id"], *partitions.flatten()], len(both))
        return numbers[: len(self._data)], numbers[len(self._data) :]

    def _named_files(self) -> pa.Array:
        """The data file of a delete file that has rows of no other; else null."""
        bounds = (
            pc.map_lookup(self._deletes[name].chunk(0), pa.scalar(PATH_FIELD, pa.int32()), "first")
            for name in ("lower_bounds", "upper_bounds")
        )
        least, most = bounds
        # Bounds that were cut off are never equal.
        only = pc.if_else(pc.equal(least, most), least, pa.scalar(None, least.type))
        is_position = pc.not_equal(self._deletes["content"].chunk(0), EQUALITY_DELETES)
        only = only.cast(pa.string(), safe=False)  # what is no text is no path of a data file
        named = pc.coalesce(self._deletes["referenced_data_file"].chunk(0), only)
        return pc.if_else(is_position, named, pa.scalar(None, pa.string()))

    def _vector_places(self, rows: Integers, has_name: Mask) -> dict[int, int]:
        offsets, sizes = (
            _mask(self._deletes[name].is_valid())
            for name in ("content_offset", "content_size_in_bytes")
        )
        for row in rows[~(has_name & offsets & sizes)[rows]].tolist():
            raise FormatError(
                "a deletion vector without offset, size or data file in the manifest",
                file=self._deletes["file_path"][row].as_py(),
            )
        rows = rows[self._targets[rows] >= 0]
        files = self._targets[rows]
        found = dict(zip(files.tolist(), rows.tolist(), strict=True))
        if len(found) < len(rows):
            for file in np.flatnonzero(np.bincount(files) > 1).tolist():
                first, second = rows[files == file][:2].tolist()
                self._twice[file] = FormatError(
                    f"two deletion vectors of {self._data['file_path'][file]}, which repair merges",
                    file=self._deletes["file_path"][second].as_py(),
                    found=self._deletes["file_path"][first].as_py(),
                    expected="one",
                )
        for row in rows[self._delete_ages[rows] < self._ages[files]].tolist():
            file = int(self._targets[row])
            raise FormatError(
                f"a deletion vector that is older than {self._data['file_path'][file]}",
                file=self._deletes["file_path"][row].as_py(),
                found=f"sequence number {self._delete_ages[row]}",
                expected=f"{self._ages[file]} or more",
            )
        return found

    def _by_file(self, rows: Integers) -> dict[int, list[int]]:
        files = self._targets[rows]
        applies = (files >= 0) & (self._ages[files] <= self._delete_ages[rows])
        found: dict[int, list[int]] = {}
        for row, file in zip(rows[applies].tolist(), files[applies].tolist(), strict=True):
            found.setdefault(file, []).append(row)
        return found

    def _unpartitioned(self) -> list[int]:
        return [
            number
            for number, spec in self._specs.items()
            if all(field.transform == VOID for field in spec.fields)
        ]


def _numbers(entries: pa.Table, name: str) -> Integers:
    found: Integers = entries[name].to_numpy().astype(np.int64)
    return found


def _mask(values: pa.Array | pa.ChunkedArray) -> Mask:
    found: Mask = values.to_numpy(zero_copy_only=False).astype(bool)
    return found
