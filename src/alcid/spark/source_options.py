"""The options of `spark.read.format("alcid")`.

For a table of a catalog, Spark gives them to a Python data source once, when the table is made. For
each query it gives the columns only, as the catalog keeps them. So the options are kept there: in
the metadata of the first column.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import TYPE_CHECKING

from alcid.errors import OptionError
from alcid.tables import ParquetTable

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

__all__ = ["SourceOptions"]

_METADATA = "alcid"
# What a catalog adds of its own.
_OF_CATALOG = ("comment", "external", "is_managed_location", "location", "owner", "provider")
_NAMES = ("index_path", "strict", "timezone", "where")
_FLAGS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Where a table is, and how it is read."""

    path: str
    index_path: str | None = None
    strict: bool = False
    timezone: str | None = None
    where: str | None = None
    storage: Mapping[str, str] = field(default_factory=dict, repr=False)

    @classmethod
    def parse(cls, given: Mapping[str, str], schema: StructType | None = None) -> SourceOptions:
        """Read options; without any, those that the schema keeps.

        Raises:
            OptionError: There is no path, a flag that is none, or a name that is misspelt.

        >>> SourceOptions.parse({"path": "data/events", "strict": "true", "region": "eu-west-1"})
        SourceOptions(path='data/events', index_path=None, strict=True, timezone=None, where=None)
        """
        if not given and schema is not None and schema.fields:
            given = schema.fields[0].metadata.get(_METADATA, {})
        options = {
            name: value
            for name, value in given.items()
            if name not in _OF_CATALOG and not name.startswith("option.")
        }
        path = options.pop("path", None)
        if path is None:
            raise OptionError(
                "path: found none, or several, expected that of one folder; "
                "CREATE TABLE keeps it if no columns are given"
            )
        for name in options.keys() - set(_NAMES):
            if near := get_close_matches(name, _NAMES, 1):
                raise OptionError(f"option {name}: not known, did you mean {near[0]}?")
        return cls(
            path,
            options.pop("index_path", None),
            _flag("strict", options.pop("strict", "false")),
            options.pop("timezone", None),
            options.pop("where", None),
            options,
        )

    def open(self) -> ParquetTable:
        """Open the table."""
        return ParquetTable.open(
            self.path,
            storage_options=self.storage,
            index_path=self.index_path,
            strict=self.strict,
        )

    def keep_in(self, schema: StructType) -> StructType:
        """Columns for a catalog, from which `parse` has the options again.

        Raises:
            OptionError: There are storage options, which may be secret.
        """
        from pyspark.sql.types import StructField, StructType

        if self.storage:
            raise OptionError(
                f"{', '.join(sorted(self.storage))}: not kept in a catalog, as storage options may "
                "be secret; CREATE TEMPORARY VIEW takes them"
            )
        texts = {
            "path": self.path,
            "index_path": self.index_path,
            "strict": str(self.strict).lower(),
            "timezone": self.timezone,
            "where": self.where,
        }
        kept = {name: value for name, value in texts.items() if value is not None}
        first, *others = schema.fields
        metadata = {**first.metadata, _METADATA: kept}
        return StructType(
            [StructField(first.name, first.dataType, first.nullable, metadata), *others]
        )


def _flag(name: str, text: str) -> bool:
    if text.lower() not in _FLAGS:
        raise OptionError(f"{name}: found {text!r}, expected true or false")
    return _FLAGS[text.lower()]
