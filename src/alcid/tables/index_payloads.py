"""Indexes out of the values of a column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from itertools import groupby

import pyarrow as pa

from alcid.bundle import Kind
from alcid.errors import LimitError, UnsupportedError
from alcid.formats.file_index import BUILDERS
from alcid.formats.file_index.column import KeyColumn, map_key_column, read_column
from alcid.options import IndexSpec
from alcid.types import DataType

__all__ = ["build_payloads"]


def build_payloads(
    values: pa.ChunkedArray, wanted: Sequence[tuple[IndexSpec, DataType]]
) -> tuple[dict[Kind, bytes | None], dict[Kind, str]]:
    """Build the indexes of a column, or those of keys of the map that it is.

    Args:
        values: All values of the column in a file.
        wanted: The indexes, sorted by what they are of, each with the type of its values.

    Returns:
        The payloads, None for a key of a map in a file without rows; and what could not be built,
        with the reason.

    >>> from alcid.options import parse_options
    >>> (spec,) = parse_options({"file-index.bsi.columns": "id"})
    >>> values = pa.chunked_array([[3, 1, 2]])
    >>> payloads, skipped = build_payloads(values, [(spec, DataType.parse("BIGINT"))])
    >>> list(map(str, payloads)), skipped
    (["bsi of 'id'"], {})
    """
    payloads: dict[Kind, bytes | None] = {}
    skipped: dict[Kind, str] = {}
    for name, same in groupby(wanted, key=lambda one: one[0].column):
        keys: KeyColumn | None = None
        for spec, data_type in same:
            kind = Kind.index(name, spec.index_type)
            if spec.map_key is not None and not len(values):
                payloads[kind] = None
                continue
            try:
                if keys is None:
                    key = spec.map_key
                    array = values if key is None else map_key_column(values, key)
                    keys = read_column(array, data_type)
                payloads[kind] = BUILDERS[spec.index_type](keys, **asdict(spec.options))
            except (UnsupportedError, LimitError) as error:  # of a value, or of too many
                skipped[kind] = str(error)
    return payloads, skipped
