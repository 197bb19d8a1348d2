"""Functions of text, as Spark has them: characters are code points, and blanks are spaces only."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from alcid.errors import EvaluationError
from alcid.predicate.row_lists import to_mask
from alcid.predicate.scalar_values import INT, STRING, Values
from alcid.types import DataType

__all__ = ["FUNCTIONS", "TextFunction"]

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
