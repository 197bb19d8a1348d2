"""JSON read strictly: a member has the very type that is asked for, or the file is refused."""

from __future__ import annotations

import json
import reprlib
from typing import Any, NoReturn

from alcid.errors import FormatError

__all__ = ["JsonObject", "shown"]


class JsonObject:
    """A JSON object whose members are taken one by one; `rest` is what was not taken.

    A key that is repeated counts as it comes last, as it does for most readers.

    >>> found = JsonObject.load(b'{"a": 1, "b": "x", "c": null}', "head", file="f", offset=4)
    >>> found.integer("a", 32), found.text("b"), found.rest
    (1, 'x', {'c': None})
    >>> found.integer("d", 32)
    Traceback (most recent call last):
    alcid.errors.FormatError: f: head: missing 'd' at offset 4
    """

    __slots__ = ("_file", "_name", "_offset", "rest")

    def __init__(self, value: object, name: str, *, file: str, offset: int) -> None:
        """Take `value`, which errors call `name`, from the JSON at `offset` of `file`."""
        self._name, self._file, self._offset = name, file, offset
        if not isinstance(value, dict):
            raise self.error("not an object", shown(value))
        self.rest: dict[str, Any] = value

    @classmethod
    def load(cls, data: bytes, name: str, *, file: str, offset: int) -> JsonObject:
        """The object that `data` is: JSON in UTF-8 and nothing else."""
        try:
            value = json.loads(data.decode("utf-8"), parse_constant=_refuse)
        except UnicodeDecodeError as error:
            problem = f"not UTF-8 ({error.reason}, byte {error.start} of it)"
        except RecursionError:
            problem = "nested too deeply"
        except ValueError as error:  # bad JSON, or a number of thousands of digits
            problem = f"not JSON ({error})"
        else:
            return cls(value, name, file=file, offset=offset)
        raise FormatError(f"{name}: {problem}", file=file, offset=offset)

    def child(self, value: object, name: str) -> JsonObject:
        """A value from within this object, which must be an object too."""
        return JsonObject(value, name, file=self._file, offset=self._offset)

    def error(self, problem: str, found: object = None, expected: object = None) -> FormatError:
        """An error of this object."""
        return FormatError(
            f"{self._name}: {problem}",
            file=self._file,
            offset=self._offset,
            found=found,
            expected=expected,
        )

    def take(self, key: str) -> object:
        """A member that must be there, of whatever type."""
        if key not in self.rest:
            raise self.error(f"missing {key!r}")
        return self.rest.pop(key)

    def array(self, key: str) -> list[object]:
        """A member that must be an array."""
        if not isinstance(value := self.take(key), list):
            raise self.error(f"bad {key!r}", shown(value), "an array")
        return value

    def text(self, key: str) -> str:
        """A member that must be a string."""
        return self._text(self.take(key), key)

    def integer(self, key: str, bits: int) -> int:
        """A member that must be a signed integer of so many bits: neither 1.0 nor true."""
        return self._integer(self.take(key), key, bits)

    def integers(self, key: str, bits: int) -> tuple[int, ...]:
        """A member that must be an array of such integers."""
        return tuple(self._integer(value, key, bits) for value in self.array(key))

    def strings(self, key: str) -> dict[str, str]:
        """A member that, if it is there, must be an object of strings."""
        value = self.rest.pop(key, {})
        if not isinstance(value, dict):
            raise self.error(f"bad {key!r}", shown(value), "an object of strings")
        return {self._text(k, key): self._text(v, f"{key}.{k}") for k, v in value.items()}

    def _integer(self, value: object, key: str, bits: int) -> int:
        if type(value) is not int or not -(1 << bits - 1) <= value < 1 << bits - 1:
            raise self.error(f"bad {key!r}", shown(value), f"an integer of {bits} bits")
        return value

    def _text(self, value: object, key: str) -> str:
        if not isinstance(value, str):
            raise self.error(f"bad {shown(key)}", shown(value), "a string")
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:  # half of a surrogate pair, written as an escape
                raise self.error(f"bad {shown(key)}", shown(value), "Unicode text") from None
        return value


def shown(value: object) -> str:
    """A value as an error shows it: in one short line."""
    return reprlib.repr(value)


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number of JSON")
