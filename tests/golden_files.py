"""Golden files: their folders, and their JSON as Arrow arrays, predicates and expected rows."""

from __future__ import annotations

import ast
import json
import operator
import os
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import time
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from pyroaring import BitMap

from alcid import FileIndex, Predicate, col
from alcid.expressions import parse
from alcid.formats.file_index.container import write_container
from alcid.types import DataType
from tests.golden.values import rule_values

Json: TypeAlias = Any

OWN = Path(__file__).parent / "golden"
FUNCTIONS = {
    "EQUAL": "eq",
    "NOT_EQUAL": "neq",
    "LESS_THAN": "lt",
    "LESS_OR_EQUAL": "lte",
    "GREATER_THAN": "gt",
    "GREATER_OR_EQUAL": "gte",
}


@dataclass(frozen=True)
class Golden:
    """A JSON file and the bytes next to it."""

    path: Path
    json: Json

    @property
    def data(self) -> bytes:
        return self.path.with_suffix(".bin").read_bytes()

    @property
    def values(self) -> list[Json]:
        """The rows of a payload's column, listed or made by a rule."""
        if "values" in self.json:
            return list(self.json["values"])
        rule = self.json["value_rule"]
        return rule_values(rule) if isinstance(rule, dict) else formula_values(rule, self.rows)

    @property
    def rows(self) -> int:
        return int(self.json["row_count"])


def golden_files(*kinds: str) -> list[Golden]:
    """Files of these kinds: the project's own, and those of the folder ALCID_GOLDEN."""
    return [golden for golden in _every_file() if golden.json.get("kind") in kinds]


@cache  # many modules need them
def _every_file() -> list[Golden]:
    folders = [OWN]
    if other := os.environ.get("ALCID_GOLDEN"):
        folders.append(Path(other))
    paths = sorted(path for folder in folders for path in folder.rglob("*.json"))
    return [Golden(path, json.loads(path.read_text("utf-8"))) for path in paths]


def golden_id(golden: Golden) -> str:
    return f"{golden.path.parent.name}/{golden.path.stem}"


def formula_values(formula: str, rows: int) -> list[int | None]:
    """The rows of `value(i) = ...`, a formula of comparisons, remainders and conditions.

    >>> formula_values("value(i) = 1 if i<2 else null if i%3==0 else 4", 5)
    [1, 1, 4, None, 4]
    """
    tree = ast.parse(formula.partition("=")[2].strip(), mode="eval").body
    operators: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
        ast.Lt: operator.lt,
        ast.LtE: operator.le,
        ast.Gt: operator.gt,
        ast.GtE: operator.ge,
        ast.Eq: operator.eq,
        ast.NotEq: operator.ne,
        ast.Mod: operator.mod,
        ast.Add: operator.add,
        ast.Sub: operator.sub,
        ast.Mult: operator.mul,
        ast.FloorDiv: operator.floordiv,
    }

    def value(node: ast.expr, i: int) -> Any:
        match node:
            case ast.Constant(constant):
                return constant
            case ast.Name("i"):
                return i
            case ast.Name("null"):
                return None
            case ast.IfExp(test, body, orelse):
                return value(body if value(test, i) else orelse, i)
            case ast.Compare(left, [op], [right]):
                return operators[type(op)](value(left, i), value(right, i))
            case ast.BinOp(left, op, right):
                return operators[type(op)](value(left, i), value(right, i))
        raise AssertionError(f"a formula with {ast.dump(node)}")

    return [value(tree, i) for i in range(rows)]


def arrow_array(values: Sequence[Json], data_type: DataType) -> pa.Array:
    """Values in their JSON form as a column of `data_type`."""
    if data_type.root == "MAP":
        inner = data_type.children[1]
        pairs = [None if value is None else value["map"] for value in values]
        flat = [item for pair in pairs if pair for item in pair]
        items = arrow_array([item for _, item in flat], inner)
        ends = np.cumsum([0, *(len(pair or ()) for pair in pairs)])
        offsets = pa.array([*ends[:-1], ends[-1]], pa.int32())
        nulls = pa.array([pair is None for pair in pairs], pa.bool_())
        keys = pa.array([key for key, _ in flat], pa.string())
        return pa.MapArray.from_arrays(offsets, keys, items, mask=nulls)
    arrow_type = data_type.to_arrow()
    if data_type.root in ("BINARY", "VARBINARY"):
        arrow_type = pa.binary()
    raw = [None if value is None else _raw(value, data_type) for value in values]
    if data_type.root in ("FLOAT", "DOUBLE"):  # by bits, to preserve the bits of a NaN
        return pa.array(raw, pa.uint32() if data_type.root == "FLOAT" else pa.uint64()).view(
            arrow_type
        )
    if data_type.root in ("DATE", "TIME") or data_type.root.startswith("TIMESTAMP"):
        width = arrow_type.bit_width
        return pa.array(raw, pa.int32() if width == 32 else pa.int64()).view(arrow_type)
    return pa.array(raw, arrow_type)


def _raw(value: Json, data_type: DataType) -> Any:
    """A value as its Arrow type takes it."""
    match value:
        case {"f32": bits} | {"f64": bits}:
            return int(bits, 16)
        case {"hex": text}:
            return bytes.fromhex(text)
        case {"millis": millis, "nano_of_millis": nanos}:
            unit = data_type.to_arrow().unit
            return (millis * 10**6 + nanos) // {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[unit]
        case str() if data_type.root == "DECIMAL":
            return Decimal(value)
        case int() if data_type.root == "TIME":  # milliseconds
            unit = data_type.to_arrow().unit
            return value * {"ms": 1, "us": 10**3, "ns": 10**6}[unit]
    return value


def literal(value: Json, data_type: DataType) -> Any:
    """A value in its JSON form as a Python literal."""
    match value:
        case {"f32": bits}:
            return struct.unpack(">f", bytes.fromhex(bits))[0]
        case {"f64": bits}:
            return struct.unpack(">d", bytes.fromhex(bits))[0]
        case {"millis": _}:
            raw = _raw(value, data_type)
            return np.datetime64(raw, data_type.to_arrow().unit)
        case int() if data_type.root == "DATE":
            return np.datetime64(value, "D")
        case int() if data_type.root == "TIME":
            seconds, millis = divmod(value, 1000)
            return time(seconds // 3600, seconds // 60 % 60, seconds % 60, millis * 1000)
    return _raw(value, data_type)


def predicate(column: str, op: str, literals: Sequence[Any]) -> Predicate:
    """A golden question as a predicate."""
    it = col(column)
    match op:
        case "is_null":
            return it.is_null()
        case "is_not_null":
            return it.is_not_null()
        case "in":
            return it.isin(literals)
        case "not_in":
            return ~it.isin(literals)
        case "between":
            return it.between(*literals)
        case "not_between":
            return ~it.between(*literals)
        case "starts_with":
            return it.starts_with(literals[0])
        case "ends_with" | "contains" | "like":
            return parse(f"`{column}` LIKE '%{literals[0]}%_'")  # what no index answers
    comparison: Callable[[Any, Any], Any] = {
        "eq": operator.eq,
        "neq": operator.ne,
        "lt": operator.lt,
        "lte": operator.le,
        "gt": operator.gt,
        "gte": operator.ge,
    }[op]
    leaf: Predicate = comparison(it, literals[0])
    return leaf


def tree(question: Json, types: dict[str, DataType]) -> Predicate:
    """A golden question on a container, which may be a tree."""
    for word, join in (("and", operator.and_), ("or", operator.or_)):
        if word in question:
            first, *others = (tree(part, types) for part in question[word])
            for other in others:
                first = join(first, other)
            return first
    column = question["column"]
    op = FUNCTIONS.get(question["function"], question["function"].lower())
    data_type = types.get(column, DataType.parse("STRING"))
    return predicate(column, op, [literal(value, data_type) for value in question["literals"]])


def rows_of(ranges: Iterable[Sequence[int]]) -> BitMap:
    """Half-open ranges as a set of rows."""
    rows = BitMap()
    for begin, end in ranges:
        rows.add_range(begin, end)
    return rows


def index_of(index_type: str, payload: bytes, data_type: DataType, name: str) -> FileIndex:
    """A payload as the only index of a file, for its column `c`."""
    container = write_container({("c", index_type): payload})
    return FileIndex.from_bytes(container, {"c": data_type}, strict=True, name=name)
