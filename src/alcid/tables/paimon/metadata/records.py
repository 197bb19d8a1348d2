"""Avro object containers, as manifests are: records by the names of their fields.

Names of records differ between writers, and older ones do not write newer fields: both are read by
what the file says of itself.

Manifests of tables with `manifest.format=orc`: the records of an ORC file.

They have the fields of those in Avro, so that what they mean is read by the same code. Footers are
checked here before Arrow sees them; the data of ORC files has no checksums.

Many objects at once, without a look for garbage among them.
"""

from __future__ import annotations

import gc
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

import fastavro
import pyarrow as pa

from alcid.datafiles.orc.footer import MAGIC, parse_footer, read_tails
from alcid.datafiles.parquet import ReadReport
from alcid.datafiles.parquet.decoding import naming_damage
from alcid.errors import FormatError, OptionError, UnsupportedError
from alcid.formats.avro import read_records
from alcid.formats.source import BytesSource, read_each
from alcid.tables.paimon.metadata.unknown_fields import FieldFinder, UnknownField, extend_schema

if TYPE_CHECKING:
    from pyarrow.orc import ORCFile

__all__ = [
    "CODECS",
    "is_orc",
    "nullable",
    "read_as",
    "read_orc",
    "record_schema",
    "uncollected",
    "write_records",
]

_AVRO_TYPES: Final = {
    **dict.fromkeys((pa.int8(), pa.int16(), pa.int32()), "int"),
    pa.int64(): "long",
    pa.bool_(): "boolean",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.string(): "string",
    pa.binary(): "bytes",
}
_TIME: Final = pa.timestamp("ms", "UTC")
"""What Avro manifests keep the time of creation of a file in."""


def is_orc(data: bytes) -> bool:
    """Whether a manifest is an ORC file.

    >>> is_orc(b"ORC..."), is_orc(b"Obj" + bytes([1]))
    (True, False)
    """
    return data.startswith(MAGIC)


def read_orc(data: bytes, *, file: str) -> tuple[dict[str, Any], Iterator[dict[str, Any]]]:
    """The schema and the records of an ORC file, as those of Avro are given.

    Raises:
        FormatError: It is damaged, or states more records than it has bytes.
        LimitError: Its footer is too large.
        UnsupportedError: It is encrypted, compressed in a way that Paimon does not, or has a field
            of a type that manifests do not have.
    """
    from pyarrow.orc import ORCFile

    source = BytesSource(data, file)
    (tail,) = read_tails([source], ReadReport(), read_each)
    footer = parse_footer(tail.footer, tail.postscript, source)
    rows = sum(stripe.rows for stripe in footer.stripes)
    if rows > len(data):  # every entry has a name, and names differ
        raise FormatError("records of an ORC manifest", file=file, found=rows, expected=len(data))
    with naming_damage(file, "damaged ORC manifest"):
        opened = ORCFile(io.BytesIO(data))
        schema = _avro_type(pa.struct(list(opened.schema)), file)
    return schema, _records(opened, file)


def _records(opened: ORCFile, file: str) -> Iterator[dict[str, Any]]:
    for stripe in range(opened.nstripes):
        with naming_damage(file, "damaged ORC manifest"):
            batch = opened.read_stripe(stripe)
            columns = [_as_in_avro(column) for column in batch.columns]
            records = pa.RecordBatch.from_arrays(columns, batch.schema.names).to_pylist()
        yield from records


def _avro_type(kind: Any, file: str, name: str = "record") -> Any:
    """The type that a field has in a manifest in Avro."""
    if pa.types.is_struct(kind):
        fields = [
            {"name": field.name, "type": ["null", _avro_type(field.type, file, field.name)]}
            for field in kind
        ]
        return {"type": "record", "name": name, "fields": fields}
    if pa.types.is_list(kind):
        return {"type": "array", "items": ["null", _avro_type(kind.value_type, file, name)]}
    if pa.types.is_timestamp(kind):
        return {"type": "long", "logicalType": "timestamp-millis"}
    if kind not in _AVRO_TYPES:
        raise UnsupportedError(f"{file}: field {name}: {kind} is no type of a manifest")
    return _AVRO_TYPES[kind]


def _as_in_avro(values: pa.Array) -> pa.Array:
    """Timestamps, also those of a struct, as instants in milliseconds."""
    if pa.types.is_timestamp(values.type):
        return values.cast(pa.timestamp("ms")).cast(_TIME)
    if not pa.types.is_struct(values.type):
        return values
    children = [_as_in_avro(child) for child in values.flatten()]
    return pa.StructArray.from_arrays(
        children, [field.name for field in values.type], mask=values.is_null()
    )


CODECS = {"zstd": "zstandard", "none": "null", "snappy": "snappy", "deflate": "deflate"}
"""What Avro calls the values of the option `manifest.compression`."""

T = TypeVar("T")
Record = dict[str, Any]


def read_as(
    parse: Callable[[Record, tuple[UnknownField, ...], str], T],
    data: bytes,
    *,
    schema: Record,
    version: int,
    what: str,
    file: str,
) -> list[T]:
    """All records of a container, each as what it means; of an ORC file, if it is one.

    Args:
        parse: Makes something of a record and of its fields that are not known, and is given the
            name of the file for its errors.
        data: The container.
        schema: The fields that are known.
        version: The newest version of its records that is known.
        what: What errors call it.
        file: Its name.

    Raises:
        FormatError: It is damaged, a record lacks something, or is of a newer version.
    """
    found: list[T] = []
    try:
        written, records = (read_orc if is_orc(data) else read_records)(data, file=file)
        unknown = FieldFinder(written, schema, file=file)
        for record in records:
            if record.get("_VERSION", version) > version:
                raise FormatError(
                    f"version of a {what}", file=file, found=record["_VERSION"], expected=version
                )
            found.append(parse(record, unknown.find(record), file))
    except (KeyError, TypeError, AttributeError, StopIteration) as error:
        raise FormatError(f"damaged {what}: {error!r}", file=file) from None
    return found


def write_records(
    schema: Record,
    records: Iterable[Record],
    compression: str,
    unknown: Iterable[tuple[UnknownField, ...]] = (),
) -> bytes:
    """A container of records.

    Args:
        schema: Of the records, as far as it is known.
        records: What to write; they may be made one by one.
        compression: The value of `manifest.compression`.
        unknown: The fields that the records have besides.

    Raises:
        OptionError: No such compression.
        UnsupportedError: A field that is not known is of two types.
    """
    if compression not in CODECS:
        raise OptionError(
            f"manifest.compression: found {compression}, expected one of {', '.join(CODECS)}"
        )
    file = io.BytesIO()
    extended = fastavro.parse_schema(extend_schema(schema, unknown))
    fastavro.writer(file, extended, records, codec=CODECS[compression])
    return file.getvalue()


def nullable(name: str, kind: Any) -> Record:
    """A field that may be null, and is by default."""
    return {"name": name, "type": ["null", kind], "default": None}


def record_schema(path: str, fields: Sequence[tuple[str, Any] | Record]) -> Record:
    """The schema of a record, with the name that Paimon's own writer gives it.

    Args:
        path: The names of the fields that lead to it, each behind a `_`; empty for the outermost.
        fields: Each a name and a type, or what `nullable` gives.
    """
    described = [
        one if isinstance(one, dict) else {"name": one[0], "type": one[1]} for one in fields
    ]
    name = f"org.apache.paimon.avro.generated.record{path}"
    return {"type": "record", "name": name, "fields": described}


@contextmanager
def uncollected() -> Iterator[None]:
    """Let no garbage be looked for: what manifests say are many objects, and none of them is any.

    It takes a sixth off the time to open a table of 100,000 files. Where two threads are here at
    the same time, the first to leave lets it begin again for both.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
