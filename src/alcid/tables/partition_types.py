"""The type of a partition column, from the text in the paths, and the values of that text.

The inference is that of Spark 4.1.4, compared value by value with `spark.read.parquet`. A value is
the first of these that takes it; `%3A` in a path stands for a colon:

| inferred        | text                                                                         |
|-----------------|------------------------------------------------------------------------------|
| INT, BIGINT     | sign and digits of any script: 7, +7, 007                                    |
| DECIMAL(p, 0)   | the same beyond BIGINT, and 1. or 1e3, of up to 38 digits                    |
| DOUBLE          | what Java reads: 1.5, 1e-3, 1d, 0x1p3, NaN, Infinity, spaces around          |
| TIMESTAMP_LTZ(6)| yyyy-MM-dd HH:mm:ss and at most one digit of a fraction                      |
| DATE            | yyyy-MM-dd                                                                   |
| TIME(6)         | HH:mm:ss and at most six digits of a fraction                                |
| STRING          | all else: 2025-8-1, 10:00, nan, true, null, 1_000                            |

Values of one column come to one type: integers and decimals to the widest, INT and DOUBLE to
DOUBLE, DATE and TIMESTAMP_LTZ to TIMESTAMP_LTZ, any other two to STRING, also BIGINT and DOUBLE.
`__HIVE_DEFAULT_PARTITION__` is null and goes with any type. A column of nulls only is STRING here;
Spark says `void`, a type that tables do not have.

Spark infers TIME(6) even while `spark.sql.timeType.enabled` is off, as it is unless set.

Only text, times and timestamps are unescaped before they are read: `%37` is the text 7.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from decimal import Decimal
from functools import lru_cache, reduce

from alcid import options
from alcid.errors import OptionError, UnsupportedError
from alcid.predicate.text import to_date, to_double, to_time, to_timestamp
from alcid.predicate.zones import Zone, find_zone, instant_of
from alcid.types import MAX_LENGTH, DataType

__all__ = ["NULL", "escape", "infer", "read_value", "require_readable", "unescape"]

NULL = "__HIVE_DEFAULT_PARTITION__"
"""The folder of rows without a value, as it stands in the path."""

_INT, _BIGINT, _DOUBLE = DataType("INT"), DataType("BIGINT"), DataType("DOUBLE")
_DATE, _TIME = DataType("DATE"), DataType("TIME", precision=6)
_TIMESTAMP = DataType("TIMESTAMP_LTZ", precision=6)
_STRING = DataType("VARCHAR", length=MAX_LENGTH)
_BYTES = DataType("VARBINARY", length=MAX_LENGTH)
_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
_MOMENTS = ("TIME", "TIMESTAMP", "TIMESTAMP_LTZ")
_MOST_DIGITS = 38
# The digits that Spark gives to integers beside a decimal.
_DIGITS = {"INT": 10, "BIGINT": 20}

_BLANK = "".join(map(chr, range(0x21)))
_ESCAPED = re.compile("%([0-9A-Fa-f]{2})")
_UNSAFE = re.compile(r"""[\x01-\x1f\x7f"#%'*/:=?\\{\[\]^]""")
# All that is no text begins so, which spares most texts the rest; times may be escaped.
_BEGIN = re.compile(r"[\0-\x20]*[+-]?[\d.NI%]")
_WHOLE = re.compile(r"([+-]?)(\d+)")
_EXACT = re.compile(r"([+-]?)(\d*)(?:\.(\d*))?(?:[eE]([+-]?)(\d+))?")
_YEAR_TO_DAY = r"(?:[0-9]{4}|\+[0-9]{5,}|-(?!0+-)[0-9]{4,})-[0-9]{2}-[0-9]{2}"
_STRICT_DATE = re.compile(_YEAR_TO_DAY)
_STRICT_CLOCK = r"[0-9]{2}:[0-9]{2}:[0-9]{2}"
_STRICT_TIMESTAMP = re.compile(rf"{_YEAR_TO_DAY} {_STRICT_CLOCK}(?:\.[0-9])?")
_STRICT_TIME = re.compile(rf"{_STRICT_CLOCK}(?:\.[0-9]{{1,6}})?")


def unescape(text: str) -> str:
    """What Spark wrote as `%` and two hexadecimal digits, of one character below 256 each.

    UTF-8 is not decoded, and a `%` that no two digits follow stands for itself.

    >>> unescape("10%3A00"), unescape("100%"), unescape("%C3%A4")
    ('10:00', '100%', 'Ã¤')
    """
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text) if "%" in text else text


def escape(text: str) -> str:
    """A name or a value as Spark writes it into a path.

    >>> escape("10:00"), escape("a b/100%"), escape("{ä}")
    ('10%3A00', 'a b%2F100%25', '%7Bä}')
    """
    return _UNSAFE.sub(lambda found: f"%{ord(found[0]):02X}", text)


def infer(values: Iterable[str]) -> DataType:
    """The type that holds the values of a column, as they stand in the paths.

    >>> print(infer(["007", "1.5"]), infer(["2025-08-01", NULL]), infer(["1", "2025-08-01"]))
    DOUBLE DATE STRING
    """
    found = {_infer_one(value) for value in values if value != NULL}
    return reduce(_wider, found) if found else _STRING


def _infer_one(raw: str) -> DataType:
    if not _BEGIN.match(raw):
        return _STRING
    number = _whole(raw)
    if number is not None and -(1 << 63) <= number < 1 << 63:
        return _INT if -(1 << 31) <= number < 1 << 31 else _BIGINT
    exact = _exact(raw)
    if exact is not None and exact[2] <= 0:
        precision = max(len(exact[1]), 1) - exact[2]
        if precision <= _MOST_DIGITS:
            return DataType("DECIMAL", precision=precision)
    if _double(raw) is not None:
        return _DOUBLE
    text = unescape(raw)
    if _STRICT_TIMESTAMP.fullmatch(text) and to_timestamp(text) is not None:
        return _TIMESTAMP
    if _STRICT_DATE.fullmatch(raw) and to_date(raw) is not None:
        return _DATE
    if _STRICT_TIME.fullmatch(text) and to_time(text) is not None:
        return _TIME
    return _STRING


def _wider(one: DataType, other: DataType) -> DataType:
    roots = {one.root, other.root}
    if len(roots) == 1 and "DECIMAL" not in roots:
        return one
    if roots == {"INT", "BIGINT"}:
        return _BIGINT
    if roots <= {"INT", "BIGINT", "DECIMAL"}:
        digits = (_DIGITS.get(each.root, each.precision) for each in (one, other))
        return DataType("DECIMAL", precision=max(digits))
    if roots == {"INT", "DOUBLE"}:
        return _DOUBLE
    return _TIMESTAMP if roots == {"DATE", "TIMESTAMP_LTZ"} else _STRING


def require_readable(data_type: DataType) -> None:
    """Make sure that text in a path can be read as a type.

    Raises:
        UnsupportedError: It cannot.

    >>> require_readable(DataType("CHAR", length=3))
    Traceback (most recent call last):
    alcid.errors.UnsupportedError: a partition column cannot be CHAR(3): take STRING
    """
    plain = *_BITS, *_MOMENTS, "BOOLEAN", "FLOAT", "DOUBLE", "DECIMAL", "DATE"
    if data_type.root not in plain and data_type not in (_STRING, _BYTES):
        text = data_type.root in ("CHAR", "VARCHAR")
        hint = ": take STRING" if text else ": take BYTES" if data_type.root == "BINARY" else ""
        raise UnsupportedError(f"a partition column cannot be {data_type}{hint}")


def read_value(raw: str, data_type: DataType) -> object:
    """The value of text in a path, for `pa.array`; None where the text is none of that type.

    Text is read as Spark reads it for a schema that is given, but what does not fit is refused:
    Spark makes -128 of 128 for a TINYINT and 0.01 of 1 for a DECIMAL(4, 2). A fraction of a second
    is cut to the digits of the type. A timestamp without a zone is in `alcid.options.timezone`.

    >>> read_value("007", DataType("INT")), read_value("2025-8-1", DataType("DATE"))
    (7, 20301)
    """
    match data_type.root:
        case "VARCHAR":
            return unescape(raw)
        case "VARBINARY":
            return raw.encode()
        case "BOOLEAN":
            return {"true": True, "false": False}.get(raw.lower())
        case "FLOAT" | "DOUBLE":
            return _double(raw)
        case "DECIMAL":
            return _decimal(raw, data_type)
        case "DATE":
            return to_date(raw)
        case "TIME":
            nanos = to_time(unescape(raw), data_type.precision)
            return None if nanos is None else nanos // _nanos_per_unit(data_type)
        case "TIMESTAMP" | "TIMESTAMP_LTZ":
            return _timestamp(unescape(raw), data_type)
    number, limit = _whole(raw), 1 << _BITS[data_type.root] - 1
    return number if number is not None and -limit <= number < limit else None


def _ascii(digits: str) -> str:
    """Digits of any script as ASCII, without zeros in front."""
    if not digits.isascii():
        digits = "".join(str(unicodedata.decimal(digit)) for digit in digits)
    return digits.lstrip("0")


def _is_java(word: str) -> bool:
    """Whether Java, which looks at UTF-16, sees the same digits as Python does."""
    return word.isascii() or max(word) <= "\uffff"


def _whole(raw: str) -> int | None:
    """A whole number of less than 20 digits, of any script."""
    match = _WHOLE.fullmatch(raw)
    if match is None or not _is_java(raw):
        return None
    digits = _ascii(match[2])
    return int(f"{match[1]}{digits or 0}") if len(digits) < 20 else None


def _exact(raw: str) -> tuple[str, str, int] | None:
    """Sign, digits without zeros in front, and how many of them are a fraction; below 0: zeros."""
    match = _EXACT.fullmatch(raw)
    if match is None or not (match[2] or match[3]) or not _is_java(raw):
        return None
    fraction, exponent = match[3] or "", _ascii(match[5] or "")
    if len(exponent) > 9:
        return None
    scale = len(fraction) - int(f"{match[4] or ''}{exponent or 0}")
    return match[1], _ascii(match[2] + fraction), scale


def _decimal(raw: str, data_type: DataType) -> Decimal | None:
    exact = _exact(raw)
    if exact is None:
        return None
    sign, digits, scale = exact
    kept = digits.rstrip("0")
    zeros = data_type.scale - scale + len(digits) - len(kept)
    if not kept:
        zeros = 0
    if zeros < 0 or len(kept) + zeros > data_type.precision:
        return None
    whole = tuple(map(int, kept + "0" * zeros))
    return Decimal((int(sign == "-" and bool(kept)), whole, -data_type.scale))


def _double(raw: str) -> float | None:
    """Java's reading, which knows NaN and Infinity in this spelling only."""
    word = raw.strip(_BLANK)
    letters = word.lstrip("+-")
    return None if letters.isalpha() and letters not in ("NaN", "Infinity") else to_double(raw)


def _timestamp(text: str, data_type: DataType) -> int | None:
    clock = to_timestamp(text, data_type.precision)
    if clock is None:
        return None
    default = options.current_settings().timezone
    zone = _zone(clock.zone or default)
    if zone is None and clock.zone is None:
        raise OptionError(f"alcid.options.timezone: found {default!r}, expected a zone")
    if zone is None:
        return None
    local = data_type.root == "TIMESTAMP_LTZ"  # of a TIMESTAMP, the zone in the text is dropped
    nanos = instant_of(clock.nanos, zone) if local else clock.nanos
    count = nanos // _nanos_per_unit(data_type)
    return count if -(1 << 63) <= count < 1 << 63 else None


@lru_cache(maxsize=16)
def _zone(name: str) -> Zone | None:
    return find_zone(name)


@lru_cache(maxsize=64)
def _nanos_per_unit(data_type: DataType) -> int:
    return {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}[data_type.to_arrow().unit]
