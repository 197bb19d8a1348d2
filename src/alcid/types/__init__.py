"""Column types: Spark, Arrow and Paimon names of the same thing, and which index takes it.

Everything inside Alcid speaks `DataType`, which is Paimon's set of types without nullability. The
table of all of them is in docs/questions/types.md; a test holds it to this code.

>>> DataType.from_spark("decimal(10,2)").to_arrow()
Decimal128Type(decimal128(10, 2))
>>> indexes_for(DataType.parse("DECIMAL(10, 2)"))
('range-bitmap', 'bsi')
"""

from __future__ import annotations

from alcid.types.data_type import (
    BYTE_STRING_TYPES,
    CHARACTER_TYPES,
    DATETIME_TYPES,
    FLOAT_TYPES,
    INDEX_TYPES,
    INTEGER_TYPES,
    MAX_LENGTH,
    ROOTS,
    TIME_TYPES,
    DataType,
    indexes_for,
    require_index,
)

__all__ = [
    "BYTE_STRING_TYPES",
    "CHARACTER_TYPES",
    "DATETIME_TYPES",
    "FLOAT_TYPES",
    "INDEX_TYPES",
    "INTEGER_TYPES",
    "MAX_LENGTH",
    "ROOTS",
    "TIME_TYPES",
    "DataType",
    "indexes_for",
    "require_index",
]
