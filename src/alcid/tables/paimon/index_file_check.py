"""Files of deletion vectors and hashes, against what a Paimon table says of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from alcid.errors import FileGoneError, FormatError
from alcid.formats.deletion_vector import DeletionVector, DeletionVectorFile, DeletionVectorRange
from alcid.formats.hash_index import HashIndex
from alcid.paimon_metadata.index_manifest import DELETION_VECTORS, HASH, IndexEntry
from alcid.tables.checked import Checked
from alcid.tables.paimon.checked_table import CheckedTable

__all__ = ["IndexFileCheck", "vectors_twice"]

_VECTORS = "deletion vectors"


def vectors_twice(entries: Iterable[IndexEntry]) -> Iterator[tuple[str, str]]:
    """Data files with two vectors: the data file, and in which index files they are."""
    seen: dict[tuple[bytes, int, str], str] = {}
    for entry in entries:
        for place in entry.ranges or ():
            data_file = entry.partition, entry.bucket, place.data_file
            if data_file in seen:
                yield place.data_file, f"two vectors, in {seen[data_file]} and {entry.name}"
            seen.setdefault(data_file, entry.name)


@dataclass(frozen=True, slots=True)
class IndexFileCheck:
    """An index file of a bucket."""

    entry: IndexEntry
    path: str
    rows: Mapping[str, int]
    """Of those data files that it has vectors of and that are live, by their names."""

    @property
    def size(self) -> int:
        """All of it is read."""
        return self.entry.size

    def run(self, table: CheckedTable) -> Checked:
        """Read the file, and compare."""
        found = Checked()
        if self.entry.external_path is not None:
            return found
        if self.entry.index_type == DELETION_VECTORS and not self.entry.ranges:
            self._warn(found)
        try:
            size = table.storage.stat(self.path).size
            if size != self.entry.size:
                problem = f"found {size} bytes, expected {self.entry.size}"
                found.findings.add(self.path, "size", problem)
            elif self.entry.index_type == DELETION_VECTORS:
                self._check_vectors(table, found)
            elif self.entry.index_type == HASH:
                self._check_hashes(table, found)
        except FileGoneError:
            gone = table.gone(self.path)
            gone.checked = gone.changed = 0  # no data file
            found.add(gone)
        except FormatError as error:
            found.findings.add(self.path, "", error)
        return found

    def _warn(self, found: Checked) -> None:
        """Say that an entry without vectors is trouble."""
        if self.entry.ranges is None:
            problem = "without ranges: writers of Paimon's Java fail on the bucket"
        else:
            problem = (
                "of no file: when pypaimon commits, writers of Paimon's Java fail on the bucket"
            )
        found.warnings.add(self.path, _VECTORS, problem)

    def _check_vectors(self, table: CheckedTable, found: Checked) -> None:
        ranges = self.entry.ranges or ()
        if self.entry.rows != len(ranges):
            problem = f"found {self.entry.rows}, expected {len(ranges)}"
            found.findings.add(self.path, "row count", problem)
        with DeletionVectorFile.open(table.storage.source(self.path, self.entry.size)) as file:
            try:
                vectors = file.read_all(ranges)
            except FormatError:
                vectors = self._read_each(file, ranges, found)
        for name, vector in vectors.items():
            if name not in self.rows:
                # Compactions of Java leave some: no reader looks at it.
                found.warnings.add(self.path, f"vector of {name}", "it is no live data file")
            elif vector.last is not None and vector.last >= self.rows[name]:
                problem = f"found row {vector.last}, expected below {self.rows[name]}"
                found.findings.add(self.path, f"vector of {name}", problem)

    def _read_each(
        self, file: DeletionVectorFile, ranges: Iterable[DeletionVectorRange], found: Checked
    ) -> dict[str, DeletionVector]:
        """Those that can be read."""
        vectors: dict[str, DeletionVector] = {}
        for place in ranges:
            try:
                vectors[place.data_file] = file.read(place)
            except FormatError as error:
                found.findings.add(self.path, f"vector of {place.data_file}", error)
        return vectors

    def _check_hashes(self, table: CheckedTable, found: Checked) -> None:
        data = table.storage.source(self.path).read(0, self.entry.size)
        index = HashIndex.from_bytes(data, name=self.path)
        hashes = len(index) + index.duplicates
        if hashes != self.entry.rows:
            problem = f"found {self.entry.rows}, expected {hashes}"
            found.findings.add(self.path, "row count", problem)
