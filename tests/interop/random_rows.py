"""Random keys: rows in their JSON form, and the same as Arrow columns."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pyarrow as pa

from alcid.types import DataType
from tests.golden.binary_row_cases import RANDOM_TYPES as KEY_TYPES
from tests.golden.binary_row_cases import random_value
from tests.golden.values import Json
from tests.golden_files import arrow_array

__all__ = ["KEY_TYPES", "arrow_columns", "random_rows"]


def random_rows(types: Sequence[str], count: int) -> list[list[Json]]:
    """Rows without null; the header of a run names the seed that they come from."""
    chance = random.Random(random.getrandbits(64))
    return [[random_value(chance, data_type) for data_type in types] for _ in range(count)]


def arrow_columns(types: Sequence[str], rows: Sequence[Sequence[Json]]) -> list[pa.Array]:
    """The columns of rows."""
    return [
        arrow_array([row[number] for row in rows], DataType.parse(data_type))
        for number, data_type in enumerate(types)
    ]
