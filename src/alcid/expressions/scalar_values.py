"""Columns of values with Spark's arithmetic and comparisons, whole arrays at once.

| type                | held as                                                              |
|---------------------|----------------------------------------------------------------------|
| integers            | int64, whatever the width; what does not fit is an error, or wraps   |
| FLOAT, DOUBLE       | float32, float64                                                     |
| DECIMAL             | unscaled integers: int64 up to 18 digits, Python's beyond            |
| STRING              | an Arrow array                                                       |
| DATE                | days, int64                                                          |
| TIMESTAMP, ..._LTZ  | microseconds, int64: of the wall clock, or since the epoch           |

What stands in `data` for a null means nothing.

Functions of text, as Spark has them: characters are code points, and blanks are spaces only.
"""

from __future__ import annotations

import operator
import unicodedata
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from alcid._arrays import BoolArray, Int64Array, plain
from alcid.errors import EvaluationError
from alcid.expressions.expression import Operator
from alcid.expressions.row_values import to_mask
from alcid.types import MAX_LENGTH, DataType

BOOLEAN, INT, BIGINT = DataType("BOOLEAN"), DataType("INT"), DataType("BIGINT")
FLOAT, DOUBLE, DATE = DataType("FLOAT"), DataType("DOUBLE"), DataType("DATE")
STRING = DataType("VARCHAR", length=MAX_LENGTH)
TIMESTAMP = DataType("TIMESTAMP", precision=6)
TIMESTAMP_LTZ = DataType("TIMESTAMP_LTZ", precision=6)
INTEGERS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
"""The integer types, and their bits."""
LONG = 1 << 63
"""The least number beyond BIGINT."""
MOST_DIGITS = 38
"""Of a DECIMAL."""

_COMPACT = 18
_MICROS = {"s": 1_000_000, "ms": 1_000, "us": 1}
_DIVISION_SCALE = 38
_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
}


class Failure(Enum):
    """What becomes of a row for which an operation has no value."""

    ERROR = "error"
    """ANSI: the query fails."""
    NULL = "null"
    """As `try_cast` does: null, by the rules of ANSI."""
    LEGACY = "legacy"
    """Without ANSI: integers wrap around, the rest is null."""


@dataclass(frozen=True, slots=True)
class Values:
    """A column of values of one type."""

    type: DataType
    data: Any
    valid: BoolArray

    def __len__(self) -> int:
        return len(self.valid)

    def without(self, bad: BoolArray, failure: Failure, problem: str) -> Values:
        """The same, null for `bad` rows.

        Raises:
            EvaluationError: There is one that is not null, and that is an error.
        """
        bad = bad & self.valid
        if not bad.any():
            return self
        if failure is Failure.ERROR:
            raise EvaluationError(f"{problem}, as Spark with ANSI rules would say")
        return Values(self.type, self.data, self.valid & ~bad)


def from_arrow(array: pa.ChunkedArray | pa.Array, data_type: DataType) -> Values:
    """A column of rows; of TIMESTAMP with at most six digits."""
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    if isinstance(array.type, pa.BaseExtensionType):
        return from_arrow(array.storage, data_type)
    array = plain(array)
    valid = to_mask(pc.is_valid(array))
    return Values(data_type, _data(array, data_type), valid)


def _data(array: pa.Array, data_type: DataType) -> Any:
    kind = array.type
    if pa.types.is_null(kind):
        array = pa.nulls(len(array), data_type.to_arrow())
        kind = array.type
    match data_type.root:
        case "VARCHAR":
            return array.cast(pa.large_string())
        case "BOOLEAN":
            return to_mask(array)
        case "DECIMAL":
            return _unscaled(array, data_type)
        case "FLOAT" | "DOUBLE":
            dtype = np.float32 if data_type.root == "FLOAT" else np.float64
            return array.fill_null(0).to_numpy(zero_copy_only=False).astype(dtype)
        case "DATE":
            days = array.cast(pa.date32()).cast(pa.int32())
            return days.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        case "TIMESTAMP" | "TIMESTAMP_LTZ":
            ticks = array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
            factor = _MICROS[kind.unit]
            most = LONG // factor - 1
            if factor > 1 and len(ticks) and max(-int(ticks.min()), int(ticks.max())) > most:
                raise EvaluationError("a timestamp beyond what Spark holds")
            return ticks * factor
    return array.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)


def _unscaled(array: pa.Array, data_type: DataType) -> npt.NDArray[Any]:
    if pa.types.is_uint64(array.type):
        return array.fill_null(0).to_numpy(zero_copy_only=False).astype(object)  # type: ignore[no-any-return]
    array = array.cast(pa.decimal128(data_type.precision, data_type.scale))
    buffer = array.buffers()[1]
    words = np.zeros(2 * len(array), np.int64)
    if buffer is not None and len(array):
        words = np.frombuffer(buffer, np.int64, 2 * len(array), 16 * array.offset)
    if data_type.precision <= _COMPACT:
        return np.where(to_mask(pc.is_valid(array)), words[0::2], 0)
    lower, upper = words.view(np.uint64)[0::2].astype(object), words[1::2].astype(object)
    return np.where(to_mask(pc.is_valid(array)), upper * (1 << 64) + lower, 0).astype(object)


def decimal_data(data: npt.NDArray[Any], precision: int) -> npt.NDArray[Any]:
    """Integers in the dtype that numbers of so many digits are held in."""
    return data.astype(np.int64 if precision <= _COMPACT else object)


def rescaled(
    data: npt.NDArray[Any], scale: int, target: DataType
) -> tuple[npt.NDArray[Any], BoolArray]:
    """Unscaled integers of a scale as those of a DECIMAL, rounded half up, and which do not fit."""
    digits = data.astype(object)
    if target.scale >= scale:
        digits = digits * 10 ** (target.scale - scale)
    else:
        digits = _half_up(digits, 10 ** (scale - target.scale))
    beyond = (np.abs(digits) >= 10**target.precision).astype(bool)
    return decimal_data(np.where(beyond, 0, digits), target.precision), beyond


def _half_up(dividend: npt.NDArray[Any], divisor: Any) -> npt.NDArray[Any]:
    """Quotients of Python's integers, rounded half away from zero."""
    size = (2 * np.abs(dividend) + np.abs(divisor)) // (2 * np.abs(divisor))
    quotient: npt.NDArray[Any] = np.where((dividend < 0) != (divisor < 0), -size, size)
    return quotient


def within_width(data: npt.NDArray[Any], data_type: DataType) -> tuple[Int64Array, BoolArray]:
    """Integers as those of a type, wrapped around, and which of them do not fit."""
    bits = INTEGERS[data_type.root]
    least, most = -(1 << bits - 1), (1 << bits - 1) - 1
    beyond = ((data < least) | (data > most)).astype(bool)
    if data.dtype == object:
        data = np.where(beyond, (data - least) % (1 << bits) + least, data)
        return data.astype(np.int64), beyond
    wrapped = data.astype(f"i{bits // 8}").astype(np.int64)
    return wrapped, beyond


# -- arithmetic --------------------------------------------------------------------------------


def compute(sign: str, left: Values, right: Values, to: DataType, failure: Failure) -> Values:
    """`left` + - * / % `right`.

    Args:
        sign: The operator.
        left: Of the common type of both; DECIMALs may differ in precision and scale.
        right: The same.
        to: The type of the result.
        failure: What becomes of an overflow and of a division by zero.
    """
    valid = left.valid & right.valid
    if sign in "/%":
        zero = (right.data == 0).astype(bool)
        word = "a division by zero" if sign == "/" else "a remainder by zero"
        valid = Values(to, None, valid).without(zero, failure, word).valid
        right = Values(right.type, np.where(zero, 1, right.data).astype(right.data.dtype), valid)
    if to.root == "DECIMAL":
        data, beyond = _compute_decimals(sign, left, right, to)
        return Values(to, data, valid).without(beyond, failure, f"{to} overflows in {sign}")
    if to.root in INTEGERS:
        data, beyond = _compute_integers(sign, left.data, right.data, to)
        integers = Values(to, data, valid)
        if failure is Failure.LEGACY:
            return integers
        return integers.without(beyond, failure, f"{to} overflows in {sign}")
    with np.errstate(all="ignore"):
        if sign == "/":
            data = left.data / right.data
        elif sign == "%":
            data = np.fmod(left.data, right.data)
        else:
            data = _ARITHMETIC[sign](left.data, right.data)
    return Values(to, data, valid)


def _compute_integers(
    sign: str, left: Int64Array, right: Int64Array, to: DataType
) -> tuple[Int64Array, BoolArray]:
    if sign == "%":  # with the sign of the dividend; -1 aside, which overflows within
        rest = np.fmod(left, np.where(right == -1, 1, right))
        return rest, np.zeros(len(rest), bool)
    with np.errstate(over="ignore"):
        data = _ARITHMETIC[sign](left, right)
    if to.root != "BIGINT":
        return within_width(data, to)
    if sign == "+":
        return data, ((left ^ data) & (right ^ data)) < 0
    if sign == "-":
        return data, ((left ^ right) & (left ^ data)) < 0
    beyond = np.abs(left.astype(float) * right.astype(float)) > 2.0**62
    near = np.flatnonzero(beyond)
    exact = left[near].astype(object) * right[near].astype(object)
    beyond[near] = exact != data[near].astype(object)
    return data, beyond


def _compute_decimals(
    sign: str, left: Values, right: Values, to: DataType
) -> tuple[npt.NDArray[Any], BoolArray]:
    ours, theirs = left.data.astype(object), right.data.astype(object)
    first, second = left.type.scale, right.type.scale
    if sign == "*":
        return rescaled(ours * theirs, first + second, to)
    if sign == "/":  # Spark keeps 38 digits behind the point, then rounds once more
        shift = _DIVISION_SCALE + second - first
        quotient = _half_up(ours * 10**shift, theirs)
        return rescaled(quotient, _DIVISION_SCALE, to)
    scale = max(first, second)
    ours, theirs = ours * 10 ** (scale - first), theirs * 10 ** (scale - second)
    if sign == "%":
        size = np.abs(ours) % np.abs(theirs)
        return rescaled(np.where(ours < 0, -size, size), scale, to)
    return rescaled(_ARITHMETIC[sign](ours, theirs), scale, to)


# -- comparisons -------------------------------------------------------------------------------


def compare(sign: Operator, left: Values, right: Values) -> Values:
    """`left` compared with `right`, which is of the same type, DECIMALs of any scale.

    NaN equals NaN and is above all other numbers; -0.0 equals 0.0; text is compared by its bytes.
    """
    equal, below = _order(left, right)
    match sign:
        case "<=>":
            both = left.valid & right.valid
            truth = np.where(both, equal, ~left.valid & ~right.valid)
            return Values(BOOLEAN, truth, np.ones(len(truth), bool))
        case "=":
            truth = equal
        case "<>":
            truth = ~equal
        case "<":
            truth = below
        case "<=":
            truth = below | equal
        case ">":
            truth = ~(below | equal)
        case _:  # >=
            truth = ~below
    return Values(BOOLEAN, truth, left.valid & right.valid)


def _order(left: Values, right: Values) -> tuple[BoolArray, BoolArray]:
    """Which values are equal, and which of the left are below."""
    ours, theirs = left.data, right.data
    if left.type.root == "VARCHAR":
        return to_mask(pc.equal(ours, theirs)), to_mask(pc.less(ours, theirs))
    if left.type.root == "DECIMAL":
        first, second = left.type.scale, right.type.scale
        scale = max(first, second)
        if max(_whole_digits(left.type), _whole_digits(right.type)) + scale > _COMPACT:
            ours, theirs = ours.astype(object), theirs.astype(object)
        ours, theirs = ours * 10 ** (scale - first), theirs * 10 ** (scale - second)
    equal, below = (ours == theirs).astype(bool), (ours < theirs).astype(bool)
    if left.type.root in ("FLOAT", "DOUBLE"):
        ours_nan, theirs_nan = np.isnan(ours), np.isnan(theirs)
        equal |= ours_nan & theirs_nan
        below |= ~ours_nan & theirs_nan
    return equal, below


def _whole_digits(data_type: DataType) -> int:
    return data_type.precision - data_type.scale


_MOST = (1 << 31) - 1
_CASED_LATE = "\u019b\u0264"  # their capitals came with Unicode 16, which Spark has


@dataclass(frozen=True, slots=True)
class TextFunction:
    """A function of text, whose other arguments are integers."""

    apply: Callable[..., Values]
    type: DataType = STRING
    least: int = 1
    most: int = 1
    """How many arguments it takes."""


def _upper(values: Values) -> Values:
    return _mapped(values, pc.ascii_upper, str.upper)


def _lower(values: Values) -> Values:
    return _mapped(values, pc.ascii_lower, str.lower)


def _mapped(
    values: Values, quick: Callable[[pa.Array], pa.Array], slow: Callable[[str], str]
) -> Values:
    """ASCII at once; other text by Unicode's full mapping, each distinct text once."""
    data = quick(values.data)
    if to_mask(pc.string_is_ascii(values.data)).all():
        return Values(STRING, data, values.valid)
    encoded = values.data.dictionary_encode()
    mapped = pa.array([_map(text, slow) for text in encoded.dictionary.to_pylist()], data.type)
    return Values(STRING, mapped.take(encoded.indices), values.valid)


def _map(text: str, slow: Callable[[str], str]) -> str:
    for character in text:
        late = character in _CASED_LATE and character.upper() == character
        if late or unicodedata.category(character) == "Cn":  # newer than this Python's Unicode
            raise EvaluationError(f"the case of the character U+{ord(character):04X} is not known")
    return slow(text)


def _length(values: Values) -> Values:
    lengths = pc.utf8_length(values.data).fill_null(0).cast(pa.int64())
    return Values(INT, lengths.to_numpy(zero_copy_only=False), values.valid)


def _trimmed(trim: Callable[..., pa.Array]) -> Callable[[Values], Values]:
    return lambda values: Values(STRING, trim(values.data, characters=" "), values.valid)


def _substr(values: Values, position: int, length: int = _MOST) -> Values:
    """From a position, 1 being the first, 0 the same, -1 the last."""
    start = position - 1 if position > 0 else position
    stop = start + length
    if length <= 0:
        data = pc.utf8_slice_codeunits(values.data, 0, 0)
    elif start >= 0:
        data = pc.utf8_slice_codeunits(values.data, start, min(stop, _MOST))
    else:
        data = pc.utf8_slice_codeunits(values.data, start, stop if stop < 0 else _MOST)
    return Values(STRING, data, values.valid)


FUNCTIONS: dict[str, TextFunction] = {
    **dict.fromkeys(("upper", "ucase"), TextFunction(_upper)),
    **dict.fromkeys(("lower", "lcase"), TextFunction(_lower)),
    **dict.fromkeys(
        ("length", "len", "char_length", "character_length"), TextFunction(_length, INT)
    ),
    "trim": TextFunction(_trimmed(pc.utf8_trim)),
    "ltrim": TextFunction(_trimmed(pc.utf8_ltrim)),
    "rtrim": TextFunction(_trimmed(pc.utf8_rtrim)),
    **dict.fromkeys(("substr", "substring"), TextFunction(_substr, least=2, most=3)),
}
"""By name, in lower case."""
