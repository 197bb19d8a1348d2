"""Levels of a primary-key table: which files a read sees, and which have to be merged.

With deletion vectors, what was compacted (levels above 0) has each key once, older rows being
marked; a batch read leaves level 0 out until a compaction takes it in. Without them, or if asked
for, all levels are merged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from alcid.errors import UnsupportedError
from alcid.formats.deletion_vector import DeletionVector
from alcid.paimon_metadata.manifest import ManifestEntry
from alcid.paimon_metadata.row_bytes import unpack_rows
from alcid.paimon_metadata.schema import TableSchema
from alcid.paimon_metadata.table_options import TableOptions
from alcid.pictures.units import count_text
from alcid.tables.paimon.data_files import PlacedFile
from alcid.tables.paimon.keyed.key_reading import read_key_rows
from alcid.tables.paimon.merging import KeyRows, losers
from alcid.tables.paimon.sections import is_raw, plan_sections

__all__ = ["LevelMerges", "NotCompacted", "visible_entries"]

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class NotCompacted:
    """What a read leaves out, as no compaction has taken it in yet."""

    files: int = 0
    rows: int = 0

    def __str__(self) -> str:
        return (
            f"level 0 is not yet compacted ({count_text(self.files, 'file')}, "
            f"{count_text(self.rows, 'row')}), and left out as Paimon leaves it out: "
            "merge_on_read=True (--merge-on-read) reads it"
        )


def visible_entries(
    entries: Sequence[ManifestEntry], options: TableOptions, *, merge_on_read: bool
) -> tuple[list[ManifestEntry], NotCompacted]:
    """The files that a read sees, and what it does not see."""
    if not options.skips_level_0 or merge_on_read:
        return list(entries), NotCompacted()
    left = [entry for entry in entries if not entry.file.level]
    return (
        [entry for entry in entries if entry.file.level],
        NotCompacted(len(left), sum(entry.file.rows for entry in left)),
    )


class LevelMerges:
    """The merging of the files of a primary-key table, section by section, when it is needed."""

    def __init__(
        self,
        files: Sequence[PlacedFile],
        schema: TableSchema,
        schemas: Mapping[int, TableSchema],
        options: TableOptions,
        read: Callable[[int, Sequence[str]], pa.Table],
        *,
        merge_on_read: bool,
    ) -> None:
        """Find the sections.

        Args:
            files: The files that the read sees.
            schema: Of the table.
            schemas: Of files, by their ids.
            options: Of the table.
            read: Reads columns of a file by its number, as far as it has them.
            merge_on_read: Level 0 is seen though there are deletion vectors.
        """
        self._files, self._schema, self._schemas = files, schema, schemas
        self._options, self._read = options, read
        self._sections = self._plan(compacted=options.skips_level_0 and not merge_on_read)
        self._section_of = {
            file: number for number, some in enumerate(self._sections) for file in some.tolist()
        }

    def _plan(self, *, compacted: bool) -> list[Integers]:
        """The sections that must be merged."""
        files = self._files
        levels = np.array([one.file.level for one in files], np.int64)
        known = (one.file.delete_rows for one in files)
        deletes = np.array([-1 if count is None else count for count in known], np.int64)
        names: dict[tuple[bytes, int], int] = {}
        buckets = np.array(
            [
                names.setdefault((one.entry.partition, one.entry.bucket), len(names))
                for one in files
            ],
            np.int64,
        )
        chosen = np.arange(len(files))
        if compacted:  # older rows are marked: only a bucket with rows that delete is merged
            chosen = np.flatnonzero(np.isin(buckets, buckets[deletes != 0]))
        if not len(chosen):
            return []
        if compacted and self._options.merge_engine != "deduplicate":
            name = files[int(chosen[0])].path
            raise UnsupportedError(
                f"{name}: has rows that delete, and merge-engine={self._options.merge_engine}, "
                "of which only compacted files without such rows are read"
            )
        sections = plan_sections(
            buckets[chosen],
            self._keys([files[file].file.min_key for file in chosen.tolist()]),
            self._keys([files[file].file.max_key for file in chosen.tolist()]),
        )
        every = (chosen[section] for section in sections)
        return [section for section in every if not is_raw(section, levels, deletes)]

    def _keys(self, packed: Sequence[bytes]) -> list[pa.Array]:
        types = [self._schema.types[name] for name in self._schema.key_columns]
        return unpack_rows(packed, types, file="keys of a manifest")

    def files(self) -> frozenset[int]:
        """The files that are merged with others."""
        return frozenset(self._section_of)

    def load(
        self,
        files: Integers,
        stored: Callable[[Sequence[int]], Mapping[int, DeletionVector]],
    ) -> dict[int, DeletionVector]:
        """The rows that are no rows of the table, of these files and those merged with them."""
        found: dict[int, DeletionVector] = {}
        for number in dict.fromkeys(self._section_of[file] for file in files.tolist()):
            section = self._sections[number].tolist()
            deleted = stored(section)
            rows = [self._key_rows(file, deleted.get(file)) for file in section]
            vectors = losers(
                rows,
                descending=self._options.sequence_descending,
                ignore_delete=self._options.ignore_delete,
            )
            found.update(zip(section, vectors, strict=True))
        return found

    def _key_rows(self, file: int, deleted: DeletionVector | None) -> KeyRows:
        return read_key_rows(
            self._files[file],
            deleted,
            schema=self._schema,
            schemas=self._schemas,
            options=self._options,
            read=lambda columns: self._read(file, columns),
        )
