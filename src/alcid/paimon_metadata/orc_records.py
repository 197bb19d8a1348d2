"""Manifests of tables with `manifest.format=orc`: the records of an ORC file.

They have the fields of those in Avro, so that what they mean is read by the same code. Footers are
checked here before Arrow sees them; the data of ORC files has no checksums.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from alcid.errors import FormatError, UnsupportedError
from alcid.formats.source import BytesSource, read_each
from alcid.orc_file.footer import MAGIC, parse_footer
from alcid.orc_file.tail import read_tails
from alcid.parquet_file import ReadReport
from alcid.parquet_file.decoding import naming_damage

if TYPE_CHECKING:
    from pyarrow.orc import ORCFile

__all__ = ["is_orc", "read_orc"]

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
