"""Decoding by Arrow, with its errors turned into those of Alcid; also for ORC and Avro."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from alcid.errors import AlcidError, ColumnError, FormatError, UnsupportedError

Int96Unit = Literal["us", "ns"]

_int96: ContextVar[Int96Unit] = ContextVar("int96", default="us")


@contextmanager
def int96_as(unit: Int96Unit) -> Iterator[None]:
    """Let INT96 be read in a unit, in this thread and in those that take over its context.

    The nanoseconds of an int64 do not reach the years 1 and 9999, which Spark writes; but Paimon
    has INT96 for nothing but nanoseconds.
    """
    before = _int96.set(unit)
    try:
        yield
    finally:
        _int96.reset(before)


def int96_unit() -> Int96Unit:
    """What INT96 is read as, here and now."""
    return _int96.get()


def arrow_file(file: Any, metadata: pq.FileMetaData | None = None) -> pq.ParquetFile:
    """A file for Arrow to decode; its footer is read unless it is given.

    INT96 becomes microseconds, unless `int96_as` says otherwise; its values are wrong at times, see
    `alcid.datafiles.parquet.int96`. All of the file is in memory, so nothing is read ahead.
    """
    return pq.ParquetFile(
        file,
        metadata=metadata,
        pre_buffer=False,
        coerce_int96_timestamp_unit=_int96.get(),
        page_checksum_verification=True,
    )


@contextmanager
def naming_damage(file: str, problem: str = "damaged pages") -> Iterator[None]:
    """Turn what Arrow raises into a FormatError that names `file`."""
    try:
        yield
    except AlcidError:
        raise
    except (pa.ArrowException, OSError, MemoryError, ValueError) as error:
        raise FormatError(f"{problem}: {error}", file=file) from error


def check_decimals(table: pa.Table, file: str) -> None:
    """See that decimals, nested ones too, have no more digits than their type: Arrow does not.

    Nothing that compares them could be trusted: literals and bounds go by the type.

    Raises:
        UnsupportedError: One has more; the error names file and column.
    """
    for field, column in zip(table.schema, table.columns, strict=True):
        try:
            for chunk in column.chunks if _has_decimals(field.type) else ():
                _check_digits(chunk)
        except pa.ArrowInvalid as error:
            raise UnsupportedError(f"{file}: column {field.name}: {error}") from None


def _has_decimals(arrow_type: Any) -> bool:
    if not pa.types.is_nested(arrow_type):
        return bool(pa.types.is_decimal(arrow_type))
    return any(
        _has_decimals(arrow_type.field(number).type) for number in range(arrow_type.num_fields)
    )


def _check_digits(array: pa.Array) -> None:
    if pa.types.is_decimal(array.type):
        array.validate(full=True)
    elif _has_decimals(array.type):
        is_struct = pa.types.is_struct(array.type)
        for inner in array.flatten() if is_struct else [array.flatten()]:
            _check_digits(inner)


class ColumnPositions:
    """The positions of top-level columns by name, spelled exactly so.

    >>> ColumnPositions(["id", "name"], "a.parquet").find("name")
    1
    """

    def __init__(self, names: Iterable[str], file: str) -> None:
        """The columns of `file`, in its order."""
        self._file = file
        self._positions: dict[str, list[int]] = {}
        for position, name in enumerate(names):
            self._positions.setdefault(name, []).append(position)

    def find(self, name: str) -> int:
        """The position of the column of this name.

        Raises:
            ColumnError: There is none, or more than one.
        """
        positions = self._positions.get(name, [])
        if len(positions) != 1:
            what = f"{len(positions)} columns of this name" if positions else "no such column"
            raise ColumnError(f"{self._file}: column {name}: found {what}")
        return positions[0]


def rows_without_columns(rows: int) -> pa.Table:
    """A table that only has a number of rows."""
    return pa.table([pa.nulls(rows)], [""]).select([])


def take_rows(table: pa.Table, rows: pa.Array) -> pa.Table:
    """Some of the rows; of views, out of which Arrow takes none, by way of plain text."""
    plain = pa.schema([field.with_type(_without_view(field.type)) for field in table.schema])
    if plain == table.schema:
        return table.take(rows)
    return table.cast(plain).take(rows).cast(table.schema)


def _without_view(arrow_type: Any) -> Any:
    if pa.types.is_string_view(arrow_type):
        return pa.large_string()
    return pa.large_binary() if pa.types.is_binary_view(arrow_type) else arrow_type
