"""How the rows of a table are parted: each partition value is made of a column by a transform.

```
{"spec-id": 0, "fields": [{"source-id": 3, "field-id": 1000, "name": "ts_day", "transform": "day"}]}
```
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from alcid.iceberg_metadata.metadata_json import MetadataJson

__all__ = ["VOID", "PartitionField", "PartitionSpec", "partition_names"]

VOID = "void"
"""The transform that makes null of every value."""
_FIRST_FIELD_ID = 1000


@dataclass(frozen=True, slots=True)
class PartitionField:
    """One value of a partition."""

    source_id: int
    """The column that it is made of, by its id."""
    field_id: int
    name: str
    transform: str
    """`identity`, `bucket[16]`, `day` ...; one that is not known says nothing about the column."""

    def is_like(self, other: PartitionField) -> bool:
        """Whether it is the same field, under whichever name; `void` stands for one dropped."""
        transforms = {self.transform, other.transform} - {VOID}
        return self.source_id == other.source_id and len(transforms) < 2


@dataclass(frozen=True, slots=True)
class PartitionSpec:
    """What the partitions of a data file are; old files keep the spec they were written with.

    >>> PartitionSpec.from_json({"spec-id": 2, "fields": []})
    PartitionSpec(id=2, fields=())
    """

    id: int
    fields: tuple[PartitionField, ...]

    @classmethod
    def from_json(cls, found: Mapping[str, Any], *, file: str = "<spec>") -> PartitionSpec:
        """Read one of `partition-specs`; ids that the oldest tables leave out count from 1000.

        A field of more than one source column is taken for one of an unknown transform.

        Raises:
            FormatError: It is damaged.
        """
        given = MetadataJson.of(found, file, "partition spec")
        fields = tuple(
            _field(one, _FIRST_FIELD_ID + place)
            for place, one in enumerate(given.children("fields"))
        )
        return cls(given.integer("spec-id", 0), fields)


def partition_names(specs: Mapping[int, PartitionSpec]) -> dict[tuple[int, int], str]:
    """The names of partition fields in `entries`, by spec and field id.

    A field may be renamed: all files have it under the name that the newest spec gives it, whatever
    the spec calls it that they were written with. Version 1 gave ids anew in each spec, and a new
    field may have the name of an old one: such fields are told apart by what follows their name.

    >>> old, new = (PartitionField(1, 1000, name, "identity") for name in ("a", "b"))
    >>> partition_names({0: PartitionSpec(0, (old,)), 1: PartitionSpec(1, (new,))})
    {(1, 1000): 'b', (0, 1000): 'b'}
    >>> other = PartitionField(2, 1001, "b", "day")
    >>> partition_names({0: PartitionSpec(0, (other,)), 1: PartitionSpec(1, (new,))})
    {(1, 1000): 'b', (0, 1001): 'b#1001'}
    """
    names: dict[tuple[int, int], str] = {}
    known: dict[int, dict[str, list[PartitionField]]] = {}
    for number in sorted(specs, reverse=True):
        for one in specs[number].fields:
            groups = known.setdefault(one.field_id, {})
            name = next((name for name, same in groups.items() if all(map(one.is_like, same))), "")
            if not name:
                name, taken = one.name, set(names.values())
                for mark in (one.field_id, number):
                    name = f"{name}#{mark}" if name in taken else name
            groups.setdefault(name, []).append(one)
            names[number, one.field_id] = name
    return names


def _field(found: MetadataJson, number: int) -> PartitionField:
    transform = found.text("transform")
    if found.has("source-id"):
        sources: tuple[int, ...] = (found.integer("source-id"),)
    else:
        sources = found.integers("source-ids")
    if not sources:
        raise found.error("source-ids", sources, "at least one")
    if len(sources) > 1:
        transform = f"{transform} of {len(sources)} columns"
    return PartitionField(
        sources[0], found.integer("field-id", number), found.text("name"), transform
    )
