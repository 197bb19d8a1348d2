"""Open bundles: their footers at once, everything else when it is first used.

Any number of bundles is opened in two rounds of reads.
"""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable, Iterable
from functools import cached_property

from alcid.errors import (
    AlcidError,
    AlcidWarning,
    ChecksumError,
    DamagedIndexWarning,
    FormatError,
    LimitError,
    UnsupportedError,
)
from alcid.formats.file_index.keys import KeyType
from alcid.formats.file_index.reader import IndexReader
from alcid.formats.puffin import Blob, PuffinReader
from alcid.formats.source import (
    Range,
    ReadMany,
    Section,
    Source,
    read_each,
)
from alcid.index.bundle.directory import Directory
from alcid.index.bundle.files import FileTable, Statistics
from alcid.index.bundle.format import (
    COMPLETE_PROPERTY,
    CRC_PROPERTY,
    DIRECTORY,
    FILES,
    OWN_TYPES,
    REPLACES_PROPERTY,
    VERSION_PROPERTY,
    PayloadKind,
    check_footer,
    check_version,
    has_trusted_statistics,
    number,
)
from alcid.index.bundle.payloads import Series
from alcid.storage.ranges import CachedSource

_TAIL = 256 << 10  # bundles of a thousand files or so are read whole, but for their payloads
_LARGEST_TOGETHER = 16 << 20  # directories and files up to this are read in one
_LARGEST_FILES = 512 << 20  # bytes of the table of files, when it is decompressed


def opening_ranges(source: Source) -> list[tuple[int, int]]:
    """Offset and length of what is read first: the end, and the magic at the head."""
    tail = min(_TAIL, source.size)
    head = [(0, 4)] if tail < source.size else []
    return [(source.size - tail, tail), *head]


class Bundle:
    """The indexes and statistics of many data files.

    >>> import io
    >>> from alcid.index.bundle import BundleWriter, FileEntry
    >>> from alcid.formats.source import BytesSource
    >>> file = io.BytesIO()
    >>> with BundleWriter(file) as writer:
    ...     row = writer.add_file(FileEntry("a.parquet", size=900, version="1", rows=3))
    ...     writer.add(row, PayloadKind.pages("id"), b"any bytes")
    >>> bundle = Bundle.open(BytesSource(file.getvalue()))
    >>> bundle.files.paths.to_pylist(), bundle.read(PayloadKind.pages("id"), 0)
    (['a.parquet'], b'any bytes')
    """

    def __init__(self, cached: CachedSource) -> None:
        """Check the footer; `open` is the usual way, and `open_bundles` for several."""
        self.source: Source = cached.source
        """The bundle's bytes."""
        self.name = cached.name
        """What errors call it."""
        self.cached = cached
        """The bytes, with what was read of them so far."""
        self._reader = reader = PuffinReader(cached, largest=_LARGEST_FILES)
        if VERSION_PROPERTY not in reader.properties:
            raise FormatError(f"no bundle: no property {VERSION_PROPERTY!r}", file=self.name)
        self.version: str = reader.properties[VERSION_PROPERTY]
        """The version that its writer stated."""
        check_version(self.version, self.name)
        replaced = reader.properties.get(REPLACES_PROPERTY, "")
        self.replaces: tuple[str, ...] = tuple(replaced.split(",")) if replaced else ()
        """The names of bundles beside it that this one was merged from: they are not to be used."""
        self.complete: bool = reader.properties.get(COMPLETE_PROPERTY) == "true"
        """On Iceberg, whether bundles of older snapshots are not to be looked for."""
        end = cached.size - reader.footer_size
        closing = check_footer(reader.blobs, reader.properties, file=self.name, offset=end)
        self.file_count = number(closing, "files", file=self.name)
        """How many data files it has."""
        self._series: dict[PayloadKind, Series] = {}
        self._own = {
            own: [blob for blob in reader.blobs if blob.type == own] for own in (DIRECTORY, FILES)
        }
        self._blobs: dict[PayloadKind, Blob] = {}
        for blob in reader.blobs:
            kind = PayloadKind.of_blob(blob.type, blob.properties)
            if kind is not None and self._blobs.setdefault(kind, blob) is not blob:
                raise FormatError(f"{kind} twice", file=self.name, offset=blob.offset)

    @classmethod
    def open(cls, source: Source) -> Bundle:
        """Open a bundle: one read of its end, and one of its head if it is large.

        Args:
            source: Its bytes, which must stay open.

        Raises:
            FormatError: It is damaged, or no bundle.
            UnsupportedError: It is of a later major version. Leave it alone, and warn.
        """
        cached = CachedSource(source)
        for part in opening_ranges(source):
            cached.load(*part)
        return cls(cached)

    @property
    def kinds(self) -> tuple[PayloadKind, ...]:
        """The payloads that it has, each for some of its files."""
        return tuple(self._blobs)

    @property
    def field_ids(self) -> dict[str, int]:
        """On Iceberg, the field ids of the columns that it has payloads of, as far as it says."""
        blobs = self._blobs.items()
        return {kind.column: blob.fields[0] for kind, blob in blobs if len(blob.fields) == 1}

    @cached_property
    def files(self) -> FileTable:
        """The data files and their statistics: one read, which brings the directories along.

        Raises:
            FormatError: The table is damaged.
        """
        blob = self._metadata(FILES)
        try:
            content = self._reader.read(blob)
        except LimitError:  # damage may state any size
            expected = f"at most {self._reader.largest} bytes"
            problem = "table of files too large"
            raise FormatError(
                problem, file=self.name, offset=blob.offset, expected=expected
            ) from None
        crc = f"{zlib.crc32(content):08x}"
        if crc != (stated := blob.properties.get(CRC_PROPERTY)):
            raise ChecksumError(
                "damaged table of files",
                file=self.name,
                offset=blob.offset,
                found=crc,
                expected=stated,
            )
        files = FileTable.from_bytes(content, name=self.name, offset=blob.offset)
        if len(files) != self.file_count:
            raise FormatError(
                "another number of files",
                file=self.name,
                offset=blob.offset,
                found=len(files),
                expected=self.file_count,
            )
        return files

    @cached_property
    def statistics(self) -> tuple[Statistics, ...]:
        """The statistics of its files that may be used, by column and type.

        Raises:
            FormatError: The table of files is damaged.
        """
        files = self.files
        if has_trusted_statistics(self.version):
            return files.statistics
        return tuple(column.of_values() for column in files.statistics)

    def series(self, kind: PayloadKind) -> Series | None:
        """All payloads of a kind, if it has any; reads their directory the first time.

        Raises:
            FormatError: The directory is damaged.
        """
        blob = self._blobs.get(kind)
        if blob is None:
            return None
        if kind not in self._series:
            directories = self._metadata(DIRECTORY)
            section = Section(self.cached, directories.offset, directories.length)
            size = Directory.size(number(blob, "entries", file=self.name))
            directory = Directory.read(
                section.section(number(blob, "directory", file=self.name), size),
                files=self.file_count,
                stored_size=blob.length,
            )
            self._series[kind] = Series(kind, directory, self.source, blob.offset)
        return self._series[kind]

    def index(
        self, row: int, column: str, index_type: str, key_type: KeyType
    ) -> IndexReader | None:
        """The index of a file, by its row in the table of files; None if there is none."""
        series = self.series(PayloadKind.index(column, index_type))
        entry = None if series is None else series.entry(row)
        return None if series is None or entry is None else series.index(entry, key_type)

    def read(self, kind: PayloadKind, row: int) -> bytes | None:
        """A whole payload, checked; None if the file has none of this kind."""
        series = self.series(kind)
        entry = None if series is None else series.entry(row)
        if series is None or entry is None:
            return None
        payload = series.payload(entry)
        return payload.read(0, payload.size)

    @property
    def others(self) -> tuple[Blob, ...]:
        """The blobs that are no part of it, such as theta sketches."""
        return tuple(b for b in self._reader.blobs if not b.type.startswith(OWN_TYPES))

    def read_blob(self, blob: Blob) -> bytes:
        """The content of one of `others`; whether it is damaged its own format must tell."""
        return self._reader.read(blob)

    @cached_property
    def metadata_range(self) -> tuple[int, int] | None:
        """Offset and length of files and directories; None if they are too large for one read."""
        blobs = [blob for own in self._own.values() for blob in own]
        begin = min((blob.offset for blob in blobs), default=0)
        length = max((blob.offset + blob.length for blob in blobs), default=0) - begin
        return (begin, length) if length <= _LARGEST_TOGETHER else None

    def _metadata(self, blob_type: str) -> Blob:
        """The blob of the files or the directories, read along with the other if not too large."""
        blobs = self._own[blob_type]
        if len(blobs) != 1:
            count = f"{len(blobs)} blobs of type {blob_type}"
            raise FormatError("no bundle", file=self.name, found=count, expected="one")
        if self.metadata_range is not None:
            self.cached.load(*self.metadata_range)
        return blobs[0]

    def __repr__(self) -> str:
        """Its name, and what it has."""
        return f"<Bundle {self.name}: {self.file_count} files, {len(self.kinds)} kinds>"


def open_bundles(
    sources: Iterable[Source],
    *,
    strict: bool = False,
    read_many: ReadMany = read_each,
    on_damage: Callable[[AlcidError], None] | None = None,
) -> list[Bundle]:
    """Open bundles; those that are damaged or of a later version are left out, with a warning.

    The first round reads the end of each; the second files and directories, of those that are not
    so small that the first had brought them.

    Args:
        sources: The bundles of a table, the oldest first; they must stay open.
        strict: Raise in place of the warning.
        read_many: How to read a round of ranges.
        on_damage: Is called in place of the warning.
    """
    every = [CachedSource(source) for source in sources]
    _fill([(cached, part) for cached in every for part in opening_ranges(cached)], read_many)
    bundles = []
    for cached in every:
        try:
            bundles.append(Bundle(cached))
        except (FormatError, LimitError, UnsupportedError) as error:
            if strict:
                raise
            if on_damage is not None:
                on_damage(error)
                continue
            of_later_version = isinstance(error, UnsupportedError)
            kind = AlcidWarning if of_later_version else DamagedIndexWarning
            warnings.warn(f"bundle left out: {error}", kind, stacklevel=2)
    parts = [(bundle.cached, bundle.metadata_range) for bundle in bundles]
    _fill([(cached, part) for cached, part in parts if part and not cached.has(*part)], read_many)
    return bundles


def _fill(wanted: list[tuple[CachedSource, tuple[int, int]]], read_many: ReadMany) -> None:
    """Read ranges of many sources in one round, and cache them."""
    ranges = [Range(cached.source, *place) for cached, place in wanted]
    parts = read_many(ranges) if ranges else ()
    for (cached, (offset, length)), data in zip(wanted, parts, strict=True):
        if len(data) == length:  # else it is read again, and the source says what is wrong
            cached.add(offset, data)
