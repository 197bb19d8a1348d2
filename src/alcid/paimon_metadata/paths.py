"""Where the files of a table lie: `dt=20250801/bucket-0/data-....parquet`.

The values of partitions stand in the paths as text, and the manifests do not repeat it: the text
must be the very one that Paimon makes of a value.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa

from alcid.errors import UnsupportedError
from alcid.paimon_metadata.row_bytes import unpack_rows
from alcid.types import DataType

__all__ = ["Paths", "partition_values"]

# What a folder cannot be called, or what would be read as something else.
_ESCAPED = re.compile(r"""[\x00-\x1f"#%'*/:=?\\\x7f{\[\]}^]""")
_EPOCH = datetime.date(1970, 1, 1)
_LEAST, _MOST = 1e-3, 1e7  # between which Java writes a double without an exponent
_MICROS = 6
_KINDS = (
    *("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL"),
    *("CHAR", "VARCHAR", "DATE", "TIMESTAMP", "TIMESTAMP_LTZ"),
)


def partition_values(
    partitions: Sequence[bytes], names: Sequence[str], types: Sequence[DataType], *, file: str
) -> pa.Table:
    """The values of partitions, a row for each; without columns, a table without rows."""
    columns = unpack_rows(partitions, types, file=file)
    return pa.table(dict(zip(names, columns, strict=True)))


class Paths:
    """The paths of data files and indexes, below the folder of a table."""

    def __init__(
        self,
        partition_keys: Sequence[str],
        types: Sequence[DataType],
        *,
        default_name: str,
        legacy_name: bool,
        directory: str | None,
    ) -> None:
        """Take what paths are made of.

        Args:
            partition_keys: The columns of the partitions.
            types: Their types.
            default_name: What stands for null, and for text without a letter.
            legacy_name: Dates are written as the number of their day.
            directory: A folder for all data files, if not that of the table.

        Raises:
            UnsupportedError: A column of a type that is not written as text.
        """
        for key, data_type in zip(partition_keys, types, strict=True):
            is_fine = data_type.root.startswith("TIMESTAMP") and data_type.precision > _MICROS
            if data_type.root not in _KINDS or is_fine:
                raise UnsupportedError(f"column {key}: {data_type} is not for partitions")
        self._keys, self._types = tuple(partition_keys), tuple(types)
        self._default, self._legacy = default_name, legacy_name
        self._prefix = f"{directory}/" if directory else ""
        self._known: dict[bytes, str] = {}

    def bucket(self, partition: bytes, bucket: int) -> str:
        """The folder of a bucket, with a `/` at its end."""
        if partition not in self._known:
            self.learn([partition])
        return f"{self._known[partition]}bucket-{bucket}/"

    def learn(self, partitions: Iterable[bytes]) -> None:
        """Make the folders of many partitions at once, which takes less than one by one."""
        new = [one for one in dict.fromkeys(partitions) if one not in self._known]
        if not new:
            return
        columns = [
            [
                f"{_escape(key)}={_escape(self._text(value, data_type))}/"
                for value in values.to_pylist()
            ]
            for key, values, data_type in zip(
                self._keys,
                unpack_rows(new, self._types, file="<partition>"),
                self._types,
                strict=True,
            )
        ]
        names = map("".join, zip(*columns, strict=True)) if columns else [""] * len(new)
        self._known.update((one, self._prefix + name) for one, name in zip(new, names, strict=True))

    def _text(self, value: Any, data_type: DataType) -> str:
        text = None if value is None else self._value_text(value, data_type)
        return self._default if text is None or not text.strip() else text

    def _value_text(self, value: Any, data_type: DataType) -> str:
        match value:
            case bool():
                return str(value).lower()
            case int() | str():
                return str(value)
            case Decimal():
                return f"{value:f}"
            case float():
                return _float_text(value, data_type)
            case datetime.datetime():
                return _moment_text(value, data_type, legacy=self._legacy)
            case datetime.date():
                return str((value - _EPOCH).days) if self._legacy else value.isoformat()
        raise TypeError(f"{data_type} is not for partitions")


def _escape(text: str) -> str:
    return _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", text)


def _float_text(value: float, data_type: DataType) -> str:
    """As Java's `Double.toString`: with an exponent below 0.001 and from ten million on."""
    if not math.isfinite(value):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    shortest = np.float32(value) if data_type.root == "FLOAT" else np.float64(value)
    if value == 0 or _LEAST <= abs(value) < _MOST:
        return np.format_float_positional(shortest, trim="0")
    text = np.format_float_scientific(shortest, trim="0")
    mantissa, exponent = text.split("e")
    return f"{mantissa}E{int(exponent)}"


def _moment_text(value: datetime.datetime, data_type: DataType, *, legacy: bool) -> str:
    """As Java's `LocalDateTime.toString`, which leaves out zeros at the end, or with all digits."""
    date, clock, parts = f"{value:%m-%d}", f"{value:%H:%M}", f"{value.microsecond:06d}"
    if not legacy:
        tail = f".{parts}"[: 1 + data_type.precision] if data_type.precision else ""
        return f"{value.year:04d}-{date} {clock}:{value:%S}{tail}"
    tail = "" if not value.microsecond else f".{parts.removesuffix('000')}"
    seconds = f":{value:%S}{tail}" if value.second or tail else ""
    return f"{value.year:04d}-{date}T{clock}{seconds}"
