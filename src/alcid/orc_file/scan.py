"""Stripes of an ORC file as a whole: Arrow decodes them, out of what is read in one round."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alcid.errors import FormatError, UnsupportedError
from alcid.formats.source import Range, ReadMany, Source, read_each
from alcid.orc_file.footer import Footer, Stripe, parse_footer
from alcid.orc_file.streams import Streams, parse_streams
from alcid.orc_file.tail import Tail, read_tails
from alcid.parquet_file import Coalescing, ReadReport
from alcid.parquet_file.decoding import naming_damage, rows_without_columns
from alcid.parquet_file.held import HeldFile
from alcid.parquet_file.requests import RangeReader, read_counted
from alcid.parquet_file.schema import ColumnPlaces

__all__ = ["OrcScan", "open_orc_scans"]

Integers = npt.NDArray[np.int64]

_EXPANSION = 4  # a guess: the file does not say how large a stripe is when it is decoded


def open_orc_scans(
    sources: Sequence[Source],
    *,
    read_ranges: ReadMany = read_each,
    report: ReadReport | None = None,
) -> list[OrcScan]:
    """Read the footers of files in one round, and those of their stripes in a second.

    Footers longer than 64 KiB take one more; files of up to 64 KiB only the first.

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
    found = [
        [tail.find(stripe.footer_offset, stripe.footer_length) for stripe in footer.stripes]
        for tail, footer in zip(tails, footers, strict=True)
    ]
    missing = [
        Range(source, stripe.footer_offset, stripe.footer_length)
        for source, footer, known in zip(sources, footers, found, strict=True)
        for stripe, data in zip(footer.stripes, known, strict=True)
        if data is None
    ]
    read = iter(read_counted(missing, report, read_ranges))
    stripe_footers = [[next(read) if data is None else data for data in known] for known in found]
    return [
        OrcScan(source, tail.kept(), footer, each)
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
        self, source: Source, tail: Tail, footer: Footer, stripe_footers: Sequence[bytes]
    ) -> None:
        """For `open_orc_scans`."""
        self.source, self._tail, self._footer = source, tail, footer
        self._stripe_footers = stripe_footers

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

    def column_sizes(self, columns: Sequence[str]) -> Integers:
        """Bytes of some columns in each stripe.

        Raises:
            ColumnError: The file has no such column, or more than one.
            FormatError: The footer of a stripe is damaged.
        """
        numbers = self._numbers(list(map(self._places.place, columns)))
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

        All that is needed is read in one round, and held until it is decoded. Moments are
        nanoseconds, those with a time zone in UTC.

        Args:
            row_groups: Their numbers, in the order that is wanted; by default all.
            columns: The columns, in the order that is wanted; by default all.
            coalescing: Which ranges are read in one request.
            read_ranges: Reads the ranges; `Storage.read_ranges` for files of a storage.
            report: Is told what was read.

        Raises:
            FormatError: The file is damaged, or has no such stripe.
            ColumnError: It has no such column, or more than one.
            UnsupportedError: A column has moments that nanoseconds do not reach.
        """
        report = ReadReport() if report is None else report
        every = range(len(self._footer.stripes)) if row_groups is None else row_groups
        groups = [group for group in every if self._stripe(group).rows]
        names = self.names if columns is None else columns
        chosen = list(map(self._places.place, names))
        report.row_groups += len(groups)
        if not chosen:
            return rows_without_columns(sum(self._stripe(group).rows for group in groups))
        for column in (self._footer.columns[place] for place in chosen):
            if column.problem:
                raise UnsupportedError(
                    f"{self.source.name}: column {column.name}: {column.problem}"
                )
        reader = RangeReader([self.source], coalescing or Coalescing(), report, read_ranges)
        held = self._fetch(groups, self._numbers(chosen), reader)
        inside = [self._footer.columns[place].name for place in sorted(set(chosen))]
        rows = self._decode(HeldFile(self.source, held, report), groups, inside).select(names)
        for number, place in enumerate(chosen):
            if self._footer.columns[place].is_padded:
                trimmed = pc.utf8_rtrim(rows.column(number), characters=" ")
                rows = rows.set_column(number, rows.field(number), trimmed)
        return rows

    def _decode(self, held: HeldFile, groups: Sequence[int], columns: list[str]) -> pa.Table:
        """Some columns, in the order of the file."""
        from pyarrow.orc import ORCFile

        with naming_damage(self.source.name, "damaged stripe"):
            file = ORCFile(pa.PythonFile(held, mode="r"))
            batches = [file.read_stripe(group, columns=columns) for group in groups]
            schema = batches[0].schema if batches else file.schema
        for group, batch in zip(groups, batches, strict=True):
            rows = self._stripe(group).rows
            if batch.num_rows != rows or batch.schema.names != columns:
                raise FormatError(
                    "damaged stripe",
                    file=self.source.name,
                    offset=self._stripe(group).offset,
                    found=f"{batch.num_rows} rows of {batch.schema.names}",
                    expected=f"{rows} rows of {columns}",
                )
        return pa.Table.from_batches(batches, schema=schema)

    def _fetch(
        self, groups: Sequence[int], numbers: Integers, reader: RangeReader
    ) -> dict[int, memoryview]:
        """The streams of columns with the footers, by their offsets."""
        tail = self._tail
        held = {tail.start: memoryview(tail.data)}
        for group in groups:
            place = self._stripe(group).footer_offset
            if place < tail.start:
                held[place] = memoryview(self._stripe_footers[group])
        places = [
            (offset, length)
            for group in groups
            for offset, length in self._streams[group].places(numbers)
            if offset < tail.start
        ]
        if places:
            fetched = reader.fetch(*np.array(places, np.int64).T)
            held |= {offset: fetched.range(offset, length) for offset, length in places}
        return held

    def _stripe(self, group: int) -> Stripe:
        stripes = self._footer.stripes
        if not 0 <= group < len(stripes):
            raise FormatError(
                "no such stripe", file=self.source.name, found=group, expected=len(stripes)
            )
        return stripes[group]

    def _numbers(self, places: Sequence[int]) -> Integers:
        """The numbers of columns and of their children."""
        columns = (self._footer.columns[place] for place in places)
        return np.array([number for one in columns for number in one.numbers], np.int64)

    @cached_property
    def _places(self) -> ColumnPlaces:
        return ColumnPlaces((column.name for column in self._footer.columns), self.source.name)

    @cached_property
    def _streams(self) -> tuple[Streams, ...]:
        stripes = zip(self._stripe_footers, self._footer.stripes, strict=True)
        postscript, name = self._tail.postscript, self.source.name
        return tuple(parse_streams(data, stripe, postscript, name) for data, stripe in stripes)
