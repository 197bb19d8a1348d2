"""Array aliases, and small helpers for arrays of NumPy and Arrow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

BoolArray: TypeAlias = npt.NDArray[np.bool_]
Float64Array: TypeAlias = npt.NDArray[np.float64]
Int8Array: TypeAlias = npt.NDArray[np.int8]
Int16Array: TypeAlias = npt.NDArray[np.int16]
Int32Array: TypeAlias = npt.NDArray[np.int32]
Int64Array: TypeAlias = npt.NDArray[np.int64]
UInt8Array: TypeAlias = npt.NDArray[np.uint8]
UInt32Array: TypeAlias = npt.NDArray[np.uint32]
UInt64Array: TypeAlias = npt.NDArray[np.uint64]
IntArray: TypeAlias = npt.NDArray[Any]
"""Integers of any width."""

DAY_IN_MILLIS = 86_400_000
TICKS_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
"""By the unit of an Arrow time or timestamp."""

_MOST_BYTES = (1 << 31) - 1
# From each of these on, a number and its sign need a byte more: 80, 8000, 800000 ...
_BYTE_MORE = np.array([1 << 8 * count + 7 for count in range(8)], np.uint64)


def plain(array: pa.Array | pa.ChunkedArray) -> pa.Array:
    """One array without dictionary, run-end or extension wrapping."""
    if isinstance(array, pa.ChunkedArray) and not array.num_chunks:
        kind = array.type
        return plain(pa.nulls(0, kind.value_type if pa.types.is_dictionary(kind) else kind))
    if isinstance(array, pa.ChunkedArray):
        # Each chunk fits offsets of 32 bits; all together may not.
        if (large := _large(array.type)) != array.type and array.nbytes > _MOST_BYTES:
            array = array.cast(large)
        array = array.combine_chunks()
    if isinstance(array.type, pa.BaseExtensionType):
        return plain(array.storage)
    if pa.types.is_dictionary(array.type):
        return _decoded(array)
    if pa.types.is_run_end_encoded(array.type):
        return plain(pc.run_end_decode(array))
    if pa.types.is_string_view(array.type) or pa.types.is_binary_view(array.type):
        return array.cast(pa.large_binary())  # few functions take views
    return array


def _decoded(array: pa.DictionaryArray) -> pa.Array:
    """The values of a dictionary-encoded array."""
    values = plain(array.dictionary)
    try:
        return values.take(array.indices)
    except pa.ArrowInvalid:  # repeated, they are too large for offsets of 32 bits
        return values.cast(_large(values.type)).take(array.indices)


def _large(arrow_type: pa.DataType) -> pa.DataType:
    """The variant of a string or binary type with 64-bit offsets; other types as they are."""
    if pa.types.is_string(arrow_type):
        return pa.large_string()
    return pa.large_binary() if pa.types.is_binary(arrow_type) else arrow_type


def storage_type(arrow_type: Any) -> Any:
    """The type without extension types (JSON, UUID, VARIANT ...), also of what is nested in it.

    >>> storage_type(pa.list_(pa.uuid()))
    ListType(list<item: fixed_size_binary[16]>)
    """
    if isinstance(arrow_type, pa.BaseExtensionType):
        return storage_type(arrow_type.storage_type)
    if not pa.types.is_nested(arrow_type) or pa.types.is_union(arrow_type):
        return arrow_type
    fields = [arrow_type.field(number) for number in range(arrow_type.num_fields)]
    stored = [field.with_type(storage_type(field.type)) for field in fields]
    if stored == fields:
        return arrow_type
    if pa.types.is_struct(arrow_type):
        return pa.struct(stored)
    if pa.types.is_map(arrow_type):
        return pa.map_(*stored[0].type, keys_sorted=arrow_type.keys_sorted)
    if pa.types.is_fixed_size_list(arrow_type):
        return pa.list_(stored[0], arrow_type.list_size)
    return _LISTS[arrow_type.id](stored[0])


_LISTS = {
    kind(pa.null()).id: kind for kind in (pa.list_, pa.large_list, pa.list_view, pa.large_list_view)
}


def without_extensions(table: pa.Table) -> pa.Table:
    """The table with the storage of extension types: few functions of Arrow take these.

    >>> storage = pa.array(['{"a": 1}'])
    >>> documents = pa.ExtensionArray.from_storage(pa.json_(), storage)
    >>> without_extensions(pa.table({"document": documents})).schema.types
    [DataType(string)]
    """
    for number, field in enumerate(table.schema):
        stored = storage_type(field.type)
        if stored != field.type:
            chunks = [replace_leaves(chunk, stored) for chunk in table.column(number).chunks]
            column = pa.chunked_array(chunks, stored)
            table = table.set_column(number, field.with_type(stored), column)
    return table


def replace_leaves(
    array: pa.Array, target: Any, convert: Callable[[pa.Array, Any], pa.Array] | None = None
) -> pa.Array:
    """An array of another type, that is nested in the same way.

    Args:
        array: The values; of extension types, the storage is taken.
        target: The type.
        convert: Makes values of the target's type of an array that is not nested.
    """
    if array.type == target:
        return array
    if isinstance(array.type, pa.BaseExtensionType):
        return replace_leaves(array.storage, target, convert)
    if array.offset:  # buffers and children begin with rows that are not asked for
        array = array.take(pa.array(np.arange(len(array))))
    if not pa.types.is_nested(target):
        if convert is None:
            raise TypeError(f"found {array.type}, expected {target}")
        return convert(array, target)
    numbers = range(target.num_fields)
    children = map(array.field, numbers) if pa.types.is_struct(target) else [array.values]
    return pa.Array.from_buffers(
        target,
        len(array),
        array.buffers()[: target.num_buffers],
        null_count=array.null_count,  # Arrow 19 ends the process if it is not known of a map
        children=[
            replace_leaves(child, target.field(number).type, convert)
            for number, child in zip(numbers, children, strict=True)
        ],
    )


def byte_offsets(keys: pa.LargeBinaryArray) -> IntArray:
    """Where each key starts in the data buffer of a large_binary array, and the end."""
    if not len(keys):
        return np.zeros(1, np.int64)
    return np.frombuffer(keys.buffers()[1], np.int64)[keys.offset : keys.offset + len(keys) + 1]


def changes(values: IntArray) -> BoolArray:
    """True where a value differs from the one before, and for the first."""
    differs = np.ones(len(values), bool)
    differs[1:] = values[1:] != values[:-1]
    return differs


def split_by(items: IntArray, numbers: IntArray) -> list[IntArray]:
    """Items in parts: a new one begins where the number beside an item changes.

    >>> [part.tolist() for part in split_by(np.array([5, 6, 9]), np.array([0, 0, 2]))]
    [[5, 6], [9]]
    """
    return np.split(items, np.flatnonzero(changes(numbers))[1:])


def least_bytes(lower: UInt64Array, upper: UInt64Array) -> IntArray:
    """How many bytes hold each 128-bit number with its sign: 1 to 16.

    >>> least_bytes(np.array([127, 128], np.uint64), np.zeros(2, np.uint64)).tolist()
    [1, 2]
    """
    sign = (upper.view(np.int64) >> 63).view(np.uint64)
    size, upper_size = lower ^ sign, upper ^ sign  # all bits turned over, if negative
    lengths: IntArray = np.searchsorted(_BYTE_MORE, size, "right") + 1
    beyond = np.flatnonzero(upper_size)
    lengths[beyond] = np.searchsorted(_BYTE_MORE, upper_size[beyond], "right") + 9
    return lengths


def value_text(value: pa.Scalar) -> str:
    """A value as Python writes it; as SQL does what Python's own times do not reach.

    >>> value_text(pa.scalar("auk")), value_text(pa.scalar(-1, pa.timestamp("ns")))
    ("'auk'", '1969-12-31 23:59:59.999999999')
    """
    if getattr(value.type, "unit", "") != "ns":  # else Arrow asks for pandas
        try:
            return repr(value.as_py())
        except (ValueError, OverflowError):  # a year that Python does not have
            pass
    return str(value.cast(pa.string()).as_py())
