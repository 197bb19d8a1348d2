"""What two files have that is not the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from alcid.byte_map.kinds import Kind

__all__ = ["ByteDifference", "DiffReport", "Difference", "Found", "compared"]

Found: TypeAlias = Literal["only in A", "only in B", "differs"]


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that is not the same in both."""

    entry: str
    """The index, vector, blob or property, as `city, bitmap`."""
    found: Found
    detail: str = ""
    """Of what differs the first value and position."""

    def __str__(self) -> str:
        """As it is printed."""
        told = self.detail if self.found == "differs" and self.detail else self.found
        more = f", {self.detail}" if self.detail and self.found != "differs" else ""
        return f"{self.entry}: {told}{more}"


@dataclass(frozen=True, slots=True)
class ByteDifference:
    """The first byte that is not the same."""

    offset: int
    regions: tuple[str, ...]
    """Where it lies in A, from the largest region to the smallest, as far as that is known."""

    def __str__(self) -> str:
        """As it is printed."""
        place = f" ({' > '.join(self.regions)})" if self.regions else ""
        return f"bytes differ first at offset {self.offset}{place}"


@dataclass(frozen=True, slots=True)
class DiffReport:
    """Two files of one kind, compared."""

    a: str
    b: str
    kind: Kind
    sizes: tuple[int, int]
    differences: tuple[Difference, ...]
    first_byte: ByteDifference | None
    """None if all bytes are the same."""

    @property
    def is_same(self) -> bool:
        """True when both hold the same, in whatever bytes."""
        return not self.differences

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain values."""
        first = self.first_byte
        return {
            "a": self.a,
            "b": self.b,
            "kind": str(self.kind),
            "sizes": list(self.sizes),
            "same": self.is_same,
            "identical": first is None,
            "differences": [
                {"entry": one.entry, "found": one.found, "detail": one.detail}
                for one in self.differences
            ],
            "first_byte": None
            if first is None
            else {"offset": first.offset, "regions": list(first.regions)},
        }

    def __str__(self) -> str:
        """Lines to read."""
        files = zip("AB", (self.a, self.b), self.sizes, strict=True)
        lines = [f"{letter}: {name}, {self.kind}, {size} bytes" for letter, name, size in files]
        lines.extend(map(str, self.differences))
        if self.first_byte is None:
            lines.append("the same, byte for byte")
        elif self.is_same:
            lines.append(f"same content; {self.first_byte}")
        else:
            lines.append(str(self.first_byte))
        return "\n".join(lines)


def compared(entry: str, name: str, a: object, b: object) -> list[Difference]:
    """The difference of a fact, if it is not the same in both.

    >>> [str(one) for one in compared("city, bitmap", "rows", 5, 6)]
    ['city, bitmap: rows 5 in A, 6 in B']
    """
    return [] if a == b else [Difference(entry, "differs", f"{name} {a} in A, {b} in B")]
