"""Values in their JSON form, generated columns, and how a golden file is written."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from pyroaring import BitMap

Json: TypeAlias = Any

# These lists have one item per line, so a change of one answer changes one line.
LISTS = ("fields", "rows", "predicates", "predicates_cardinality", "topn", "vectors", "hashes")
MORE_LISTS = ("sizing", "types", "payloads", "v2_long_string", "blobs", "delete_files", "tasks")
TABLE_LISTS = ("snapshots", "tags")


def f32(value: float | int) -> Json:
    """A FLOAT: its value, or as an int its raw bits (for a NaN that is not the usual one)."""
    raw = value.to_bytes(4) if isinstance(value, int) else struct.pack(">f", value)
    return {"f32": raw.hex(), "text": _float_text(struct.unpack(">f", raw)[0])}


def f64(value: float | int) -> Json:
    """A DOUBLE: its value, or as an int its raw bits."""
    raw = value.to_bytes(8) if isinstance(value, int) else struct.pack(">d", value)
    return {"f64": raw.hex(), "text": _float_text(struct.unpack(">d", raw)[0])}


def _float_text(value: float) -> str:
    return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}.get(repr(value), repr(value))


def timestamp(millis: int, nano_of_millis: int = 0) -> Json:
    """A TIMESTAMP or TIMESTAMP_LTZ of any precision."""
    return {"millis": millis, "nano_of_millis": nano_of_millis}


def binary(data: bytes) -> Json:
    """A BINARY or VARBINARY."""
    return {"hex": data.hex()}


def rule_values(rule: Json) -> list[Json]:
    """The rows of a column that is too long to be listed.

    >>> rule_values({"rule": "blocks", "rows": 7, "block": 2, "modulo": 3, "null_every": 6})
    [None, 0, 1, 1, 2, 2, None]
    """
    rows = np.arange(rule["rows"])
    values = rows // rule["block"] % rule["modulo"]
    result: list[Json] = values.tolist()
    if rule["null_every"]:
        for row in range(0, rule["rows"], rule["null_every"]):
            result[row] = None
    return result


def ranges_of(bitmap: bytes) -> list[list[int]]:
    """Positions of a serialised Roaring bitmap as half-open ranges.

    >>> ranges_of(BitMap([0, 1, 2, 7]).serialize())
    [[0, 3], [7, 8]]
    """
    positions = np.array(BitMap.deserialize(bitmap), dtype=np.int64)
    if not len(positions):
        return []
    breaks = np.flatnonzero(np.diff(positions) != 1)
    starts = positions[np.concatenate(([0], breaks + 1))]
    ends = positions[np.concatenate((breaks, [len(positions) - 1]))] + 1
    return np.stack((starts, ends), axis=1).tolist()  # type: ignore[no-any-return]


def distinct(values: Sequence[Json]) -> list[Json]:
    """The values without nulls and repetitions, in order of first occurrence."""
    values_by_text = {json.dumps(value): value for value in values if value is not None}
    return list(values_by_text.values())


def save(folder: Path, name: str, facts: dict[str, Json], data: bytes | None = None) -> None:
    """Write `<name>.json`, and `<name>.bin` if there are bytes."""
    facts = {"name": name, **facts}
    if data is not None:
        facts |= {"file": f"{name}.bin", "size": len(data)}
        (folder / f"{name}.bin").write_bytes(data)
    lines = []
    for key, value in facts.items():
        if key in LISTS + MORE_LISTS + TABLE_LISTS and value:
            items = ",\n".join(_compact(item) for item in value)
            lines.append(f'"{key}": [\n{items}\n]')
        else:
            lines.append(f'"{key}": {_compact(value)}')
    text = "{\n" + ",\n".join(lines) + "\n}\n"
    (folder / f"{name}.json").write_text(text, encoding="utf-8", newline="\n")


def _compact(value: Json) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
