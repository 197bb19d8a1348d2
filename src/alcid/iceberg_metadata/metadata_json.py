"""JSON of a table's metadata, checked: what is missing or of another kind is a `FormatError`.

Unlike the footers of Puffin files, metadata are read leniently: many programs write them, older
ones leave members out, and members that are not known do not matter.
"""

from __future__ import annotations

import json
import reprlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from alcid.errors import FormatError

__all__ = ["MetadataJson"]

T = TypeVar("T")
_KINDS: Final = {int: "a whole number", str: "a text", bool: "true or false", list: "a list"}
_LONGS: Final = range(-(1 << 63), 1 << 63)


@dataclass(frozen=True, slots=True)
class MetadataJson:
    """An object of JSON, and the file that errors name.

    >>> MetadataJson.parse('{"schema-id": "one"}', "metadata of t").integer("schema-id")
    Traceback (most recent call last):
    alcid.errors.FormatError: metadata of t: schema-id: found 'one', expected a whole number
    """

    values: dict[str, Any]
    file: str

    @classmethod
    def parse(cls, text: str | bytes, file: str) -> MetadataJson:
        """Read the JSON of an object.

        Raises:
            FormatError: It is none.
        """
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise FormatError(f"no JSON: {error}", file=file) from None
        return cls.of(found, file, "JSON")

    @classmethod
    def of(cls, found: Any, file: str, what: str) -> MetadataJson:
        """A value that must be an object."""
        if not isinstance(found, dict):
            raise FormatError(what, file=file, found=reprlib.repr(found), expected="an object")
        return cls(found, file)

    def has(self, key: str) -> bool:
        """Whether there is a value that is not null."""
        return self.values.get(key) is not None

    def integer(self, key: str, default: int | None = None) -> int:
        """A whole number of 64 bits; the default, if there is one, where it is missing."""
        return self._long(key, self._value(key, int, default))

    def text(self, key: str, default: str | None = None) -> str:
        """A text."""
        return self._value(key, str, default)

    def flag(self, key: str) -> bool:
        """True or false."""
        return self._value(key, bool)

    def integers(self, key: str) -> tuple[int, ...]:
        """A list of whole numbers."""
        return tuple(self._long(key, one) for one in self._value(key, list))

    def all_texts(self, key: str) -> tuple[str, ...]:
        """A list of texts."""
        found = self._value(key, list)
        for one in found:
            if type(one) is not str:
                raise self.error(key, one, "a text")
        return tuple(found)

    def child(self, key: str) -> MetadataJson:
        """An object within."""
        return MetadataJson.of(self._present(key), self.file, key)

    def children(self, key: str, *, optional: bool = False) -> Iterator[MetadataJson]:
        """The objects of a list; none where it is missing, if it is optional."""
        for one in self._value(key, list, [] if optional else None):
            yield MetadataJson.of(one, self.file, key)

    def texts(self, key: str) -> dict[str, str]:
        """An object whose values are all texts; empty where it is missing."""
        if not self.has(key):
            return {}
        found = self.child(key)
        return {name: found.text(name) for name in found.values}

    def error(self, problem: str, found: Any = None, expected: str | None = None) -> FormatError:
        """What is wrong, with the name of the file."""
        shown = None if found is None else reprlib.repr(found)
        return FormatError(problem, file=self.file, found=shown, expected=expected)

    def _value(self, key: str, kind: type[T], default: T | None = None) -> T:
        if default is not None and not self.has(key):
            return default
        found = self._present(key)
        if type(found) is not kind:  # bool is an int to isinstance
            raise self.error(key, found, _KINDS[kind])
        return found

    def _long(self, key: str, value: Any) -> int:
        if type(value) is not int or value not in _LONGS:
            raise self.error(key, value, "a whole number of 64 bits")
        return value

    def _present(self, key: str) -> Any:
        if not self.has(key):
            raise self.error(f"{key} is missing")
        return self.values[key]
