"""Whole stripes of an ORC file, decoded by Arrow from what is read in one round.

Arrow takes footers as they are. Where it has to read data otherwise than they say, it is given a
file of one stripe, with new footers behind the old file:

    the file as it is | nothing | stripe footer | footer | postscript | u8 its length

of which the footer names a single stripe: its streams stay where they are, and its own footer lies
behind the old end.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import Int64Array
from alcid.datafiles.orc.footer import (
    INSTANT,
    TIMESTAMP,
    Footer,
    OrcColumn,
    Stripe,
    Tail,
    parse_footer,
    read_tails,
)
from alcid.datafiles.orc.protobuf import Message, encode_message, plain_chunks
from alcid.datafiles.orc.streams import Streams, key_paths, parse_streams
from alcid.datafiles.orc.timestamps import (
    IN_UTC,
    find_writer_zone,
    has_kind,
    local_instants,
    map_kind,
    shown_by_clock,
)
from alcid.datafiles.parquet import Coalescing, ReadReport
from alcid.datafiles.parquet.decoding import (
    ColumnPositions,
    check_decimals,
    naming_damage,
    rows_without_columns,
)
from alcid.errors import FormatError, UnsupportedError
from alcid.formats.source import (
    Range,
    ReadMany,
    Source,
    read_each,
)
from alcid.storage.ranges import ArrowFile, CachedSource, RangeReader, read_counted

if TYPE_CHECKING:
    from pyarrow.orc import ORCFile

_PADDING = 16 << 10  # Arrow reads so many bytes at the end of a file, to find the footer


class LongerSource:
    """A file with bytes behind its end."""

    def __init__(self, source: Source, more: bytes) -> None:
        """Take a file, and what follows it."""
        self._source, self.more = source, more
        self.name, self.size = source.name, source.size + len(more)

    def read(self, offset: int, length: int) -> bytes:
        """Exactly `length` bytes from `offset`."""
        end = self._source.size
        inside = max(0, min(length, end - offset))
        begin = max(0, offset - end)
        data = self._source.read(offset, inside) if inside else b""
        return data + self.more[begin : begin + length - inside]


def one_stripe_file(
    source: Source,
    tail: Tail,
    stripe: Stripe,
    stripe_footer: Iterable[tuple[int, int | bytes]],
    types: Sequence[bytes] | None = None,
) -> LongerSource:
    """A file that has one stripe.

    Args:
        source: The file that has the stripe.
        tail: Its footers.
        stripe: The stripe.
        stripe_footer: The fields of its new footer.
        types: The new columns; by default, as they are.
    """
    postscript = tail.postscript
    how = postscript.codec, postscript.block_size
    own = plain_chunks(encode_message(stripe_footer), *how)
    begin = source.size + _PADDING
    location = (
        (1, stripe.offset),
        (2, stripe.index_length),
        (3, begin - stripe.offset - stripe.index_length),
        (4, len(own)),
        (5, stripe.rows),
    )
    known = tail.footer_message(source.name)
    # The stripes, the types, the rows and the statistics are others.
    unchanged = [(field, value) for field, value in known if field not in (3, 4, 6, 7)]
    columns = [(4, column) for column in (known.parts(4) if types is None else types)]
    fields = [*unchanged, (3, encode_message(location)), *columns, (6, stripe.rows)]
    footer = plain_chunks(encode_message(fields), *how)
    written = Message(tail.data[-postscript.length : -1], source.name)
    others = [(field, value) for field, value in written if field not in (1, 5)]
    end = encode_message([(1, len(footer)), (5, 0), *others])
    return LongerSource(source, bytes(_PADDING) + own + footer + end + bytes([len(end)]))


_ZONE = 3  # the field of a stripe's footer
_NO_ZONE = {
    TIMESTAMP: "timestamps in the time zone of a writer that did not say which",
    INSTANT: (
        "TIMESTAMP_LTZ in the time zone of a writer that did not say which: if that was UTC, set "
        "the table's option orc.timestamp-ltz.legacy.type to false, else write the rows again"
    ),
}
_EXPANSION = 4  # a guess: the file does not say how large a stripe is when it is decoded


def open_orc_scans(
    sources: Sequence[Source],
    *,
    read_ranges: ReadMany = read_each,
    report: ReadReport | None = None,
    has_local_instants: bool = False,
) -> list[OrcScan]:
    """Read the footers of files in one round, and those of their stripes in a second.

    Footers longer than 64 KiB take one more; files of up to 64 KiB only the first.

    Args:
        sources: The files.
        read_ranges: Reads the ranges; `Storage.read_ranges` for files of a storage.
        report: Counts what is read.
        has_local_instants: Whether TIMESTAMP_INSTANT is the instant at which the clock of the
            writer showed what is meant as UTC: Paimon's `orc.timestamp-ltz.legacy.type`.

    Raises:
        FormatError: A file is no ORC file, or a footer is damaged.
        LimitError: A footer is larger than 64 MiB.
        UnsupportedError: A file is encrypted, or compressed in another way than Paimon does.
    """
    report = ReadReport() if report is None else report
    tails = read_tails(sources, report, read_ranges)
    footers = [
        parse_footer(tail.footer, tail.postscript, source)
        for source, tail in zip(sources, tails, strict=True)
    ]
    scans = [
        [tail.find(stripe.footer_offset, stripe.footer_length) for stripe in footer.stripes]
        for tail, footer in zip(tails, footers, strict=True)
    ]
    missing = [
        Range(source, stripe.footer_offset, stripe.footer_length)
        for source, footer, known in zip(sources, footers, scans, strict=True)
        for stripe, data in zip(footer.stripes, known, strict=True)
        if data is None
    ]
    read = iter(read_counted(missing, report, read_ranges))
    stripe_footers = [[next(read) if data is None else data for data in known] for known in scans]
    return [
        OrcScan(source, tail.kept(), footer, each, has_local_instants=has_local_instants)
        for source, tail, footer, each in zip(sources, tails, footers, stripe_footers, strict=True)
    ]


class OrcScan:
    """A file whose footers were read; nothing of it stays open, and many threads may use it.

    Its stripes are what planning calls row groups.

    >>> import io, pyarrow.orc
    >>> from alcid.formats.source import BytesSource
    >>> file = io.BytesIO()
    >>> pyarrow.orc.write_table(pa.table({"id": range(3), "a": list("xyz")}), file)
    >>> (scan,) = open_orc_scans([BytesSource(file.getvalue())])
    >>> scan.group_rows
    (3,)
    >>> scan.read([0], ["a"]).to_pydict()
    {'a': ['x', 'y', 'z']}
    """

    def __init__(
        self,
        source: Source,
        tail: Tail,
        footer: Footer,
        stripe_footers: Sequence[bytes],
        *,
        has_local_instants: bool,
    ) -> None:
        """For `open_orc_scans`."""
        self.source, self._tail, self._footer = source, tail, footer
        self._stripe_footers, self._has_local_instants = stripe_footers, has_local_instants

    @property
    def footer_crc(self) -> int:
        """CRC-32 of the footer, the postscript and its length."""
        tail = self._tail
        return zlib.crc32(tail.data[-tail.postscript.length - tail.postscript.footer_length :])

    @property
    def names(self) -> list[str]:
        """The names of the top-level columns."""
        return [column.name for column in self._footer.columns]

    @property
    def group_rows(self) -> tuple[int, ...]:
        """The rows of each stripe."""
        return tuple(stripe.rows for stripe in self._footer.stripes)

    def group_bytes(self, group: int) -> int:
        """About how many bytes a stripe has when it is decoded."""
        return self._stripe(group).data_length * _EXPANSION

    def column_sizes(self, columns: Sequence[str]) -> Int64Array:
        """Bytes of some columns in each stripe.

        Raises:
            ColumnError: The file has no such column, or more than one.
            FormatError: The footer of a stripe is damaged.
        """
        numbers = self._numbers(list(map(self._positions.find, columns)))
        return np.array([streams.size(numbers) for streams in self._streams], np.int64)

    def read(
        self,
        row_groups: Sequence[int] | None = None,
        columns: Sequence[str] | None = None,
        *,
        coalescing: Coalescing | None = None,
        read_ranges: ReadMany = read_each,
        report: ReadReport | None = None,
    ) -> pa.Table:
        """Read stripes, in the types that Arrow has for those of ORC.

        All that is needed is read in one round, and stays in memory until it is decoded.
        Timestamps are nanoseconds, those with a time zone in UTC.

        Args:
            row_groups: Their numbers, in the order that is wanted; by default all.
            columns: The columns, in the order that is wanted; by default all.
            coalescing: Which ranges are read in one request.
            read_ranges: Reads the ranges; `Storage.read_ranges` for files of a storage.
            report: Counts what is read.

        Raises:
            FormatError: The file is damaged, or has no such stripe.
            ColumnError: It has no such column, or more than one.
            UnsupportedError: A column has timestamps that nanoseconds do not reach, or of an
                unknown time zone, or maps with a null key.
        """
        report = ReadReport() if report is None else report
        every = range(len(self._footer.stripes)) if row_groups is None else row_groups
        groups = [group for group in every if self._stripe(group).rows]
        names = self.names if columns is None else columns
        chosen = list(map(self._positions.find, names))
        report.row_groups += len(groups)
        if not chosen:
            return rows_without_columns(sum(self._stripe(group).rows for group in groups))
        for column in (self._footer.columns[position] for position in chosen):
            if column.problem:
                raise UnsupportedError(
                    f"{self.source.name}: column {column.name}: {column.problem}"
                )
        reader = RangeReader([self.source], coalescing or Coalescing(), report, read_ranges)
        parts = self._fetch(groups, self._numbers(chosen), reader)
        inside = [self._footer.columns[position] for position in sorted(set(chosen))]
        stripes = _StripeReader(self.source, self._tail, parts, report)
        rows = self._decode(stripes, groups, inside).select(names)
        check_decimals(rows, self.source.name)
        for number, position in enumerate(chosen):
            if self._footer.columns[position].is_padded:
                trimmed = pc.utf8_rtrim(rows.column(number), characters=" ")
                rows = rows.set_column(number, rows.field(number), trimmed)
        return rows

    def _decode(
        self, reader: _StripeReader, groups: Sequence[int], columns: Sequence[OrcColumn]
    ) -> pa.Table:
        """Some columns, in the order of the file."""
        names = [column.name for column in columns]
        if not groups:
            return pa.Table.from_batches([], schema=reader.schema(names))
        batches = []
        for group in groups:
            stripe, streams = self._stripe(group), self._streams[group]
            reader.check_keys(stripe, streams, columns)
            batch = reader.read(group, stripe, streams, columns)
            if batch.num_rows != stripe.rows or batch.schema.names != names:
                raise FormatError(
                    "damaged stripe",
                    file=self.source.name,
                    offset=stripe.offset,
                    found=f"{batch.num_rows} rows of {batch.schema.names}",
                    expected=f"{stripe.rows} rows of {names}",
                )
            batches.append(self._localized(batch, streams.zone, columns))
        return pa.Table.from_batches(batches)

    def _localized(
        self, batch: pa.RecordBatch, zone_name: str, columns: Sequence[OrcColumn]
    ) -> pa.RecordBatch:
        """The timestamps of a stripe as its writer meant them."""
        if zone_name in IN_UTC:
            return batch
        file = self.source.name
        arrays = batch.columns
        kinds = [(TIMESTAMP, shown_by_clock)]
        if self._has_local_instants:
            kinds.append((INSTANT, local_instants))
        for position, column in enumerate(columns):
            for kind, meant in kinds:
                if not has_kind(column.type, kind):
                    continue
                if not zone_name:
                    raise UnsupportedError(f"{file}: column {column.name}: {_NO_ZONE[kind]}")
                zone = find_writer_zone(zone_name, file)
                convert = partial(meant, zone=zone, file=f"{file}: column {column.name}")
                arrays[position] = map_kind(arrays[position], column.type, kind, convert)
        return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)

    def _fetch(
        self, groups: Sequence[int], numbers: Int64Array, reader: RangeReader
    ) -> dict[int, memoryview]:
        """The streams of columns with the footers, by their offsets."""
        tail = self._tail
        parts = {tail.start: memoryview(tail.data)}
        for group in groups:
            footer_offset = self._stripe(group).footer_offset
            if footer_offset < tail.start:
                parts[footer_offset] = memoryview(self._stripe_footers[group])
        ranges = [
            (offset, length)
            for group in groups
            for offset, length in self._streams[group].places(numbers)
            if offset < tail.start
        ]
        if ranges:
            responses = reader.fetch(*np.array(ranges, np.int64).T)
            parts |= {offset: responses.range(offset, length) for offset, length in ranges}
        return parts

    def _stripe(self, group: int) -> Stripe:
        stripes = self._footer.stripes
        if not 0 <= group < len(stripes):
            raise FormatError(
                "no such stripe", file=self.source.name, found=group, expected=len(stripes)
            )
        return stripes[group]

    def _numbers(self, positions: Sequence[int]) -> Int64Array:
        """The numbers of columns and of their children."""
        columns = (self._footer.columns[position] for position in positions)
        return np.array([number for column in columns for number in column.numbers], np.int64)

    @cached_property
    def _positions(self) -> ColumnPositions:
        return ColumnPositions((column.name for column in self._footer.columns), self.source.name)

    @cached_property
    def _streams(self) -> tuple[Streams, ...]:
        stripes = zip(self._stripe_footers, self._footer.stripes, strict=True)
        postscript, name = self._tail.postscript, self.source.name
        return tuple(parse_streams(data, stripe, postscript, name) for data, stripe in stripes)


class _StripeReader:
    """Decodes stripes by Arrow, from parts of the file that are in memory."""

    def __init__(
        self, source: Source, tail: Tail, parts: dict[int, memoryview], report: ReadReport
    ) -> None:
        self._source, self._tail, self._parts, self._report = source, tail, parts, report

    def schema(self, names: Sequence[str]) -> pa.Schema:
        """The columns, where nothing is read."""
        with naming_damage(self._source.name, "damaged stripe"):
            schema = self._file.schema
        return pa.schema([schema.field(name) for name in names])

    def read(
        self, group: int, stripe: Stripe, streams: Streams, columns: Sequence[OrcColumn]
    ) -> pa.RecordBatch:
        """Columns of a stripe; TIMESTAMP as if it was written in UTC."""
        names = [column.name for column in columns]
        if streams.zone in IN_UTC or not any(has_kind(each.type, TIMESTAMP) for each in columns):
            with naming_damage(self._source.name, "damaged stripe"):
                return self._file.read_stripe(group, columns=names)
        fields = [(field, value) for field, value in streams.message if field != _ZONE]
        return self._read_one(
            one_stripe_file(self._source, self._tail, stripe, [*fields, (_ZONE, b"GMT")]), names
        )

    def check_keys(self, stripe: Stripe, streams: Streams, columns: Sequence[OrcColumn]) -> None:
        """See that no map has a null key.

        Raises:
            UnsupportedError: One has.
        """
        name = self._source.name
        for path in (path for column in columns for path in key_paths(column)):
            if path.may_have_nulls(streams):
                footer = path.stripe_footer(streams, name)
                file = one_stripe_file(self._source, self._tail, stripe, footer, path.types)
                path.check(self._read_one(file, None), name)

    def _read_one(self, file: LongerSource, names: list[str] | None) -> pa.RecordBatch:
        from pyarrow.orc import ORCFile

        parts = self._parts | {self._source.size: memoryview(file.more)}
        cached = CachedSource(file, parts.items())
        with naming_damage(self._source.name, "damaged stripe"):
            opened = ORCFile(pa.PythonFile(ArrowFile(cached, self._report), mode="r"))
            return opened.read_stripe(0, columns=names)

    @cached_property
    def _file(self) -> ORCFile:
        from pyarrow.orc import ORCFile

        cached = CachedSource(self._source, self._parts.items())
        return ORCFile(pa.PythonFile(ArrowFile(cached, self._report), mode="r"))
