"""Whether a statistics file is what the metadata of an Iceberg table say of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from alcid.errors import FileGoneError, FormatError, LimitError, UnsupportedError
from alcid.formats.puffin import THETA_SKETCH, Blob, PuffinReader
from alcid.formats.puffin.writer import DISTINCT_VALUES
from alcid.iceberg_metadata.table_metadata import BlobMetadata, StatisticsFile, TableMetadata
from alcid.tables.checked import Checked
from alcid.tables.iceberg.checked_snapshot import GONE, CheckedSnapshot
from alcid.tables.verify_report import Findings

__all__ = ["StatisticsFileCheck", "statistics_files"]


@dataclass(frozen=True, slots=True)
class StatisticsFileCheck:
    """A statistics file, to be opened; what a bundle in it says of data files is not its part."""

    listed: tuple[StatisticsFile, ...]
    """What the metadata say of it: once for each snapshot that has it, all of the same path."""

    @property
    def path(self) -> str:
        """The file."""
        return self.listed[0].path

    @property
    def size(self) -> int:
        """How much there is to read, as the metadata say."""
        return self.listed[0].size

    def run(self, snapshot: CheckedSnapshot) -> Checked:
        """Read its footer and its sketches, and compare."""
        found, what = Checked(), "statistics file"
        try:
            reader = PuffinReader(snapshot.open(self.path, self.size, found))
        except FileGoneError:
            found.findings.add(self.path, what, GONE)
            return found
        except (FormatError, LimitError) as error:
            found.findings.add(self.path, what, error)
            return found
        for one in self.listed:
            if one.footer_size != reader.footer_size:
                problem = f"found {reader.footer_size:,} bytes, expected {one.footer_size:,}"
                found.findings.add(self.path, "footer", problem)
            for blob in one.blobs:
                _compare(self.path, blob, reader.blobs, found.findings)
        for held in reader.blobs:
            if held.type == THETA_SKETCH:
                _look_at_sketch(self.path, held, reader, found.findings)
        return found


def _compare(path: str, stated: BlobMetadata, blobs: tuple[Blob, ...], findings: Findings) -> None:
    """See that a blob is there as the metadata have it; readers of them trust its properties."""
    fields = tuple(stated.fields)
    same = [
        blob
        for blob in blobs
        if (blob.type, blob.fields, blob.snapshot_id) == (stated.type, fields, stated.snapshot_id)
    ]
    what = f"{stated.type} of fields {list(fields)}"
    if not same:
        problem = f"the file has none of snapshot {stated.snapshot_id}, but the metadata list it"
        findings.add(path, what, problem)
    elif not any(_ndv(blob.properties) == _ndv(stated.properties) for blob in same):
        problem = f"found {_ndv(same[0].properties)}, the metadata say {_ndv(stated.properties)}"
        findings.add(path, what, problem)


def _look_at_sketch(path: str, blob: Blob, reader: PuffinReader, findings: Findings) -> None:
    """See that a sketch can be read, and counts what is written beside it."""
    what = f"distinct values of field {', '.join(map(str, blob.fields))}"
    try:
        count = str(reader.read_theta_sketch(blob).ndv)
    except (FormatError, LimitError, UnsupportedError) as error:
        findings.add(path, what, error)
        return
    if (stated := _ndv(blob.properties)) not in (None, count):
        findings.add(path, what, f"found {stated}, the sketch says {count}")


def _ndv(properties: Mapping[str, str]) -> str | None:
    return properties.get(DISTINCT_VALUES)


def statistics_files(metadata: TableMetadata) -> Iterator[StatisticsFileCheck]:
    """What to check: each file that the metadata list, once."""
    files: dict[str, list[StatisticsFile]] = {}
    for file in metadata.statistics.values():
        files.setdefault(file.path, []).append(file)
    for listed in files.values():
        yield StatisticsFileCheck(tuple(listed))
