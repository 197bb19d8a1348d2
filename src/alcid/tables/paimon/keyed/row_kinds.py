"""What rows do: `+I` and `+U` put a row in place of that of their key, `-U` and `-D` delete it."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import types

from alcid.errors import UnsupportedError
from alcid.paimon_metadata.table_options import TableOptions

__all__ = ["DELETE_KIND", "Kinds", "are_deletes", "is_heeded", "parse_kinds"]

Kinds: TypeAlias = npt.NDArray[np.int8]
"""As the files have them: 0 for +I, 1 for -U, 2 for +U, 3 for -D."""

_NAMES: Final = ("+I", "-U", "+U", "-D")
_BEFORE: Final = _NAMES.index("-U")
DELETE_KIND: Final = _NAMES.index("-D")


def parse_kinds(values: pa.Array | pa.ChunkedArray, *, column: str) -> Kinds:
    """The kinds that a column names.

    Raises:
        UnsupportedError: Something else stands in it.

    >>> parse_kinds(pa.array(["+I", "-D"]), column="op").tolist()
    [0, 3]
    >>> parse_kinds(pa.array(["+I", "delete"]), column="op")
    Traceback (most recent call last):
    alcid.errors.UnsupportedError: column op: found 'delete', expected +I, -U, +U or -D
    """
    text = pa.chunked_array(values) if isinstance(values, pa.Array) else values
    if types.is_dictionary(text.type):
        text = text.cast(text.type.value_type)
    if not (types.is_string(text.type) or types.is_large_string(text.type)):
        raise UnsupportedError(f"column {column}: found {text.type}, expected +I, -U, +U or -D")
    found = pc.index_in(text, pa.array(_NAMES, text.type))
    if found.null_count:
        row = pc.index(pc.is_null(found), True).as_py()
        raise UnsupportedError(
            f"column {column}: found {text[row].as_py()!r}, expected +I, -U, +U or -D"
        )
    kinds: Kinds = found.to_numpy().astype(np.int8)
    return kinds


def are_deletes(kinds: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.bool_]:
    """Which of them delete.

    >>> are_deletes(np.array([0, 1, 2, 3], np.int8)).tolist()
    [False, True, False, True]
    """
    return np.asarray(kinds & 1 == 1)


def is_heeded(kinds: Kinds, options: TableOptions) -> npt.NDArray[np.bool_]:
    """Which of them the options of a table do not ignore."""
    if options.ignore_delete:
        return ~are_deletes(kinds)
    return kinds != _BEFORE if options.ignore_update_before else np.ones(len(kinds), bool)
