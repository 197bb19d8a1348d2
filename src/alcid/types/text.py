"""Types as text, in Paimon's grammar and in Spark's.

Spark writes types in `simpleString()` and in DDL; reading them needs no Spark.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from alcid.errors import UnsupportedError
from alcid.types.data_type import MAX_LENGTH, DataType, quote

_TOKEN = re.compile(
    r"""\s*(
        `(?:[^`]|``)*`                # a quoted name
      | '(?:[^'\\]|\\.|'')*'          # a comment
      | [<>(),:]
      | [^\s<>(),:`']+                # a word or a number
      | .                             # a quote that is never closed
    )""",
    re.VERBOSE | re.DOTALL,
)
_MAX_DEPTH: Final = (
    64  # as deep as Arrow reads; without a limit hostile text ends in a RecursionError
)
_MAX_DIGITS: Final = 10  # of 2147483647


class TypeReader:
    """Reads one type from text; the grammar says, by the name of a type, how to read the rest."""

    def __init__(self, text: str, grammar: Grammar, kind: str = "type") -> None:
        self._text, self._grammar, self._kind = text, grammar, kind
        self._tokens = [(match[1], match.start(1)) for match in _TOKEN.finditer(text.rstrip())]
        self._next = 0
        self._depth = 0

    def read(self) -> DataType:
        """The whole text as one type."""
        data_type = self.data_type()
        if self._next < len(self._tokens):
            raise self.error("the end")
        return data_type

    def data_type(self) -> DataType:
        """A type, with or without its nullability, which is dropped."""
        rule = self._grammar.get(self.peek())
        if rule is None:
            raise self.error("the name of a type")
        if self._depth == _MAX_DEPTH:
            raise self.error(f"at most {_MAX_DEPTH} nested types")
        start = self._next
        self._next += 1
        self._depth += 1
        parameters = rule(self)
        self._depth -= 1
        try:
            data_type = DataType(**parameters)
        except UnsupportedError as error:
            raise self._problem(self._tokens[start][1], str(error)) from None
        if self.accept("NOT"):
            self.expect("NULL")
        else:
            self.accept("NULL")
        return data_type

    def peek(self) -> str:
        """The next token in upper case, or an empty text at the end."""
        return self._tokens[self._next][0].upper() if self._next < len(self._tokens) else ""

    def accept(self, token: str) -> bool:
        """Take the next token if it is `token`."""
        accepted = self.peek() == token
        self._next += accepted
        return accepted

    def expect(self, *tokens: str) -> None:
        """Take exactly these tokens."""
        for token in tokens:
            if not self.accept(token):
                raise self.error(repr(token))

    def number(self) -> int:
        """Take a number."""
        token = self.peek()
        if not re.fullmatch(rf"[0-9]{{1,{_MAX_DIGITS}}}", token):
            raise self.error("a number")
        self._next += 1
        return int(token)

    def name(self) -> str:
        """Take the name of a field, in backticks or without."""
        if self.peek()[:1] in ("", "'", "<", ">", "(", ")", ",", ":") or self.peek() == "`":
            raise self.error("the name of a field")
        token = self._tokens[self._next][0]
        self._next += 1
        return token[1:-1].replace("``", "`") if token.startswith("`") else token

    def comment(self) -> None:
        """Take the text of a comment, which is dropped."""
        if len(self.peek()) < 2 or not self.peek().startswith("'"):
            raise self.error("a text in quotes")
        self._next += 1

    def parameters(self, *defaults: int | None) -> list[int]:
        """Take numbers in parentheses, or the defaults; None: the first must be there."""
        numbers: list[int] = []
        if defaults[0] is None or self.peek() == "(":
            self.expect("(")
            numbers.append(self.number())
            while len(numbers) < len(defaults) and self.accept(","):
                numbers.append(self.number())
            self.expect(")")
        return numbers + [default or 0 for default in defaults[len(numbers) :]]

    def error(self, expected: str) -> UnsupportedError:
        """An error at the next token."""
        if self._next == len(self._tokens):
            return self._problem(len(self._text), f"found the end, expected {expected}")
        token, position = self._tokens[self._next]
        return self._problem(position, f"found {token!r}, expected {expected}")

    def _problem(self, position: int, problem: str) -> UnsupportedError:
        return UnsupportedError(f"{self._kind} {self._text!r} at position {position}: {problem}")


Rule: TypeAlias = Callable[[TypeReader], dict[str, Any]]
Grammar: TypeAlias = Mapping[str, Rule]


def fixed(root: str, **parameters: int) -> Rule:
    """A type without parameters in the text."""
    return lambda _: {"root": root, **parameters}


def sized(root: str, default: int | None) -> Rule:
    """CHAR(n) and its like."""
    return lambda reader: {"root": root, "length": reader.parameters(default)[0]}


def decimal(reader: TypeReader) -> dict[str, Any]:
    """DECIMAL(p, s)."""
    precision, scale = reader.parameters(10, 0)
    return {"root": "DECIMAL", "precision": precision, "scale": scale}


def precise(root: str, default: int) -> Rule:
    """TIME(p) and its like."""
    return lambda reader: {"root": root, "precision": reader.parameters(default)[0]}


def nested(root: str, inner_types: int = 1) -> Rule:
    """ARRAY<e>, MAP<k, v> and their like."""

    def rule(reader: TypeReader) -> dict[str, Any]:
        reader.expect("<")
        children = [reader.data_type()]
        while len(children) < inner_types:
            reader.expect(",")
            children.append(reader.data_type())
        reader.expect(">")
        return {"root": root, "children": tuple(children)}

    return rule


def row(reader: TypeReader) -> dict[str, Any]:
    """ROW<a INT, b INT COMMENT 'x'>, or with a colon after the name, as Spark writes it."""
    names: list[str] = []
    children: list[DataType] = []
    reader.expect("<")
    while not reader.accept(">"):
        if names:
            reader.expect(",")
        names.append(reader.name())
        reader.accept(":")
        children.append(reader.data_type())
        if reader.accept("COMMENT"):
            reader.comment()
    return {"root": "ROW", "names": tuple(names), "children": tuple(children)}


def _vector(reader: TypeReader) -> dict[str, Any]:
    reader.expect("<")
    element = reader.data_type()
    reader.expect(",")
    length = reader.number()
    reader.expect(">")
    return {"root": "VECTOR", "length": length, "children": (element,)}


def _time(reader: TypeReader) -> dict[str, Any]:
    precision = reader.parameters(0)[0]
    if reader.accept("WITHOUT"):
        reader.expect("TIME", "ZONE")
    return {"root": "TIME", "precision": precision}


def _timestamp(reader: TypeReader) -> dict[str, Any]:
    root = "TIMESTAMP"
    precision = reader.parameters(6)[0]
    if reader.accept("WITHOUT"):
        reader.expect("TIME", "ZONE")
    elif reader.accept("WITH"):
        root = "TIMESTAMP_LTZ"
        reader.expect("LOCAL", "TIME", "ZONE")
    return {"root": root, "precision": precision}


def _double(reader: TypeReader) -> dict[str, Any]:
    reader.accept("PRECISION")
    return {"root": "DOUBLE"}


_PLAIN = ("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DATE", "VARIANT", "BLOB")
_PAIMON: Final[Grammar] = {
    **{root: fixed(root) for root in _PLAIN},
    "INTEGER": fixed("INT"),
    "DOUBLE": _double,
    **dict.fromkeys(("DECIMAL", "DEC", "NUMERIC"), decimal),
    "STRING": fixed("VARCHAR", length=MAX_LENGTH),
    "BYTES": fixed("VARBINARY", length=MAX_LENGTH),
    **{root: sized(root, 1) for root in ("CHAR", "VARCHAR", "BINARY", "VARBINARY")},
    "TIME": _time,
    "TIMESTAMP": _timestamp,
    "TIMESTAMP_LTZ": precise("TIMESTAMP_LTZ", 6),
    "ARRAY": nested("ARRAY"),
    "MULTISET": nested("MULTISET"),
    "MAP": nested("MAP", inner_types=2),
    "ROW": row,
    "VECTOR": _vector,
}


def parse_paimon(text: str) -> DataType:
    """Read a type as Paimon writes it, with its defaults for parameters that are left out."""
    return TypeReader(text, _PAIMON).read()


_MICROS: Final = 6  # the finest that Spark's times and timestamps are


def _string(reader: TypeReader) -> dict[str, Any]:
    if reader.accept("COLLATE") and not reader.accept("UTF8_BINARY"):
        raise reader.error("'UTF8_BINARY': an index compares strings by their bytes")
    return {"root": "VARCHAR", "length": MAX_LENGTH}


_SPARK: Final[Grammar] = {
    "BOOLEAN": fixed("BOOLEAN"),
    **dict.fromkeys(("TINYINT", "BYTE"), fixed("TINYINT")),
    **dict.fromkeys(("SMALLINT", "SHORT"), fixed("SMALLINT")),
    **dict.fromkeys(("INT", "INTEGER"), fixed("INT")),
    **dict.fromkeys(("BIGINT", "LONG"), fixed("BIGINT")),
    **dict.fromkeys(("FLOAT", "REAL"), fixed("FLOAT")),
    "DOUBLE": fixed("DOUBLE"),
    **dict.fromkeys(("DECIMAL", "DEC", "NUMERIC"), decimal),
    "STRING": _string,
    **dict.fromkeys(("CHAR", "CHARACTER"), sized("CHAR", None)),
    "VARCHAR": sized("VARCHAR", None),
    "BINARY": fixed("VARBINARY", length=MAX_LENGTH),
    "DATE": fixed("DATE"),
    "TIME": precise("TIME", _MICROS),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMP_LTZ"), fixed("TIMESTAMP_LTZ", precision=_MICROS)),
    "TIMESTAMP_NTZ": fixed("TIMESTAMP", precision=_MICROS),
    "ARRAY": nested("ARRAY"),
    "MAP": nested("MAP", inner_types=2),
    "STRUCT": row,
    "VARIANT": fixed("VARIANT"),
}
_OTHER_NAMES: Final = {
    **dict.fromkeys(("BINARY", "VARBINARY", "BLOB"), "binary"),
    "TIMESTAMP": "timestamp_ntz",
    "TIMESTAMP_LTZ": "timestamp",
}


def parse_spark(text: str) -> DataType:
    """Read a type as Spark writes it."""
    return TypeReader(text, _SPARK, "Spark type").read()


def to_spark(data_type: DataType) -> str:
    """The Spark type that holds the values of `data_type`."""
    children = [to_spark(child) for child in data_type.children]
    match data_type.root:
        case "DECIMAL":
            return f"decimal({data_type.precision},{data_type.scale})"
        case "VARCHAR" if data_type.length == MAX_LENGTH:
            return "string"
        case "CHAR" | "VARCHAR":
            return f"{data_type.root.lower()}({data_type.length})"
        case "TIME":
            if data_type.precision > _MICROS:
                raise UnsupportedError(
                    f"{data_type} has no Spark type: time ends at time({_MICROS})"
                )
            return f"time({data_type.precision})"
        case "ARRAY" | "VECTOR":
            return f"array<{children[0]}>"
        case "MAP":
            return f"map<{children[0]},{children[1]}>"
        case "MULTISET":  # the element and how often it occurs
            return f"map<{children[0]},int>"
        case "ROW":
            fields = zip(data_type.names, children, strict=True)
            return f"struct<{','.join(f'{_name(name)}:{child}' for name, child in fields)}>"
        case root:
            return _OTHER_NAMES.get(root, root.lower())


def _name(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) else quote(name)
