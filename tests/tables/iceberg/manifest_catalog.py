"""An Iceberg table with real manifests, whose catalog is this process."""

from __future__ import annotations

import io
import struct
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from math import isnan
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa

from alcid.tables.iceberg.metadata.manifests import ManifestFile, read_manifests
from tests.tables.iceberg.memory_catalog import FIELDS, MemoryCatalog
from tests.tables.iceberg.metadata.test_manifests import container, counts, field

__all__ = ["ManifestCatalog", "single_value"]

_STORED = {
    "int": "int",
    "long": "long",
    "double": "double",
    "string": "string",
    "date": {"type": "int", "logicalType": "date"},
    "timestamp": {"type": "long", "logicalType": "timestamp-micros", "adjust-to-utc": False},
    "decimal(9, 2)": {
        "type": "fixed",
        "size": 5,
        "logicalType": "decimal",
        "precision": 9,
        "scale": 2,
    },
}


def single_value(value: Any, kind: str) -> bytes:
    """A value in binary, as manifests have bounds."""
    match value:
        case str():
            return value.encode()
        case Decimal():
            unscaled = int(value.scaleb(2))
            return unscaled.to_bytes(
                (unscaled + (unscaled < 0)).bit_length() // 8 + 1, "big", signed=True
            )
        case float():
            return struct.pack("<d", value)
        case _:
            return _number(value).to_bytes(
                8 if kind in ("long", "timestamp") else 4, "little", signed=True
            )


def _number(value: Any) -> int:
    if isinstance(value, datetime):
        return int(pa.scalar(value, pa.timestamp("us")).cast(pa.int64()).as_py())
    if isinstance(value, date):
        return (value - date(1970, 1, 1)).days
    return int(value)


class ManifestCatalog(MemoryCatalog):
    """Each commit adds a manifest; a snapshot has a manifest list with summaries."""

    def __init__(self, folder: Path, fields: Sequence[tuple[str, int, str]] = FIELDS) -> None:
        """A table without a snapshot, below a folder."""
        super().__init__(folder, fields)
        self.kinds = {name: kind for name, _, kind in fields}
        self.columns = {name: number for name, number, _ in fields}
        self.listed_manifests: list[dict[str, Any]] = []
        self.spec_id = 0
        self._types: Mapping[str, Any] = {}

    def set_spec(self, *fields: tuple[str, str]) -> None:
        """Partition by columns and transforms from now on."""
        specs = self.metadata["partition-specs"]
        self.spec_id = len(specs)
        known = {
            (one["source-id"], one["transform"]): one["field-id"]
            for spec in specs
            for one in spec["fields"]
        }
        made = []
        for column, transform in fields:
            source = self.columns[column]
            number = known.setdefault((source, transform), 1000 + len(known))
            made.append(
                {
                    "source-id": source,
                    "field-id": number,
                    "name": f"p{number}",
                    "transform": transform,
                }
            )
        specs.append({"spec-id": self.spec_id, "fields": made})
        self.metadata["default-spec-id"] = self.spec_id
        self._version += 1

    @property
    def spec(self) -> list[dict[str, Any]]:
        """The fields of the current spec."""
        fields: list[dict[str, Any]] = self.metadata["partition-specs"][self.spec_id]["fields"]
        return fields

    def add(
        self,
        rows: Mapping[str, Mapping[str, Sequence[Any]]],
        *,
        partitions: Sequence[Sequence[tuple[Any, str]]] | None = None,
        **more: Any,
    ) -> int:
        """Commit files; each has its partition values, with their types."""
        before = {id(one) for one in self.files.get(self.metadata["current-snapshot-id"], [])}
        typed = {
            name: {key: _typed(values, self._types.get(key)) for key, values in columns.items()}
            for name, columns in rows.items()
        }
        number = super().add(typed, **more)
        new = [one for one in self.files[number] if id(one) not in before]
        assert len(new) == len(rows)
        self._write_manifest(number, new, list(rows.values()), partitions or [()] * len(new))
        path = self.folder / "metadata" / f"snap-{number}.avro"
        path.write_bytes(self._manifest_list())
        self.metadata["snapshots"][-1]["manifest-list"] = str(path)
        return number

    def add_rows(
        self,
        rows: Mapping[str, Mapping[str, Sequence[Any]]],
        types: Mapping[str, Any],
        partitions: Sequence[Sequence[tuple[Any, str]]],
    ) -> int:
        """Commit files whose columns are of some Arrow types."""
        self._types = types
        return self.add(rows, partitions=partitions, ids=self.columns)

    def all_entries(self) -> pa.Table:
        """The entries of the current snapshot with all metrics."""
        lists = [
            (ManifestFile(path, one["partition_spec_id"]), Path(path).read_bytes())
            for one in self.listed_manifests
            if (path := one["manifest_path"])
        ]
        return read_manifests(lists, self.load().specs)

    def _write_manifest(
        self,
        snapshot: int,
        files: Sequence[Mapping[str, Any]],
        rows: Sequence[Mapping[str, Sequence[Any]]],
        partitions: Sequence[Sequence[tuple[Any, str]]],
    ) -> None:
        records = []
        for one, values, partition in zip(files, rows, partitions, strict=True):
            stored = {key: one[key] for key in ("content", "file_path", "file_format")}
            sizes = {key: one[key] for key in ("record_count", "file_size_in_bytes")}
            keys = {
                f"p{position}": None if value is None else _in_avro(value, kind)
                for position, (value, kind) in enumerate(partition)
            }
            data_file = {**stored, **sizes, **self._metrics(values), "partition": keys}
            records.append(
                {"status": 1, "sequence_number": one["sequence_number"], "data_file": data_file}
            )
        path = self.folder / "metadata" / f"manifest-{snapshot}.avro"
        kinds = [kind for _, kind in (partitions[0] if partitions else ())]
        path.write_bytes(container(self._schema(kinds), records))
        summaries = [
            _summary([partition[position] for partition in partitions])
            for position in range(len(kinds))
        ]
        self.listed_manifests.append(
            {
                "manifest_path": str(path),
                "manifest_length": path.stat().st_size,
                "partition_spec_id": self.spec_id,
                "content": 0,
                "sequence_number": files[0]["sequence_number"] if files else 0,
                "added_files_count": len(files),
                "existing_files_count": 0,
                "partitions": summaries,
            }
        )

    def _schema(self, kinds: Sequence[str]) -> list[dict[str, Any]]:
        fields = [
            field(
                f"p{position}",
                {**stored, "name": f"fixed{position}"} if isinstance(stored, dict) else stored,
                one["field-id"],
                optional=True,
            )
            for position, (kind, one) in enumerate(zip(kinds, self.spec, strict=True))
            if (stored := _STORED[kind])
        ]
        data_file = [
            field("content", "int", 134),
            field("file_path", "string", 100),
            field("file_format", "string", 101),
            field("partition", {"type": "record", "name": "r102", "fields": fields}, 102),
            field("record_count", "long", 103),
            field("file_size_in_bytes", "long", 104),
            counts("value_counts", 109),
            counts("null_value_counts", 110),
            counts("lower_bounds", 125, "bytes"),
            counts("upper_bounds", 128, "bytes"),
        ]
        return [
            field("status", "int", 0),
            field("sequence_number", "long", 3),
            field("data_file", {"type": "record", "name": "r2", "fields": data_file}, 2),
        ]

    def _metrics(self, values: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
        metrics: dict[str, list[dict[str, Any]]] = {
            name: []
            for name in ("value_counts", "null_value_counts", "lower_bounds", "upper_bounds")
        }
        for name, column in values.items():
            number, kind = self.columns[name], self.kinds[name]
            present = _bounded(column)
            metrics["value_counts"].append({"key": number, "value": len(column)})
            nulls = sum(value is None for value in column)
            metrics["null_value_counts"].append({"key": number, "value": nulls})
            if present:
                for bounds, value in (
                    ("lower_bounds", min(present)),
                    ("upper_bounds", max(present)),
                ):
                    metrics[bounds].append({"key": number, "value": single_value(value, kind)})
        return metrics

    def _manifest_list(self) -> bytes:
        summary = {
            "type": "record",
            "name": "r508",
            "fields": [
                field("contains_null", "boolean", 509),
                field("contains_nan", "boolean", 518, optional=True),
                field("lower_bound", "bytes", 510, optional=True),
                field("upper_bound", "bytes", 511, optional=True),
            ],
        }
        fields = [
            field("manifest_path", "string", 500),
            field("manifest_length", "long", 501),
            field("partition_spec_id", "int", 502),
            field("content", "int", 517),
            field("sequence_number", "long", 515),
            field("added_files_count", "int", 504),
            field("existing_files_count", "int", 505),
            field("partitions", {"type": "array", "items": summary}, 507, optional=True),
        ]
        schema = {"type": "record", "name": "manifest_file", "fields": fields}
        file = io.BytesIO()
        fastavro.writer(file, schema, self.listed_manifests, codec="deflate")
        return file.getvalue()


def _typed(values: Sequence[Any], kind: Any) -> Any:
    return values if kind is None else pa.array(values, kind)


def _bounded(values: Sequence[Any]) -> list[Any]:
    """The values that bounds are of: neither null nor NaN."""
    return [one for one in values if one is not None and not (type(one) is float and isnan(one))]


def _in_avro(value: Any, kind: str) -> Any:
    if kind.startswith("decimal"):
        return int(value.scaleb(2)).to_bytes(5, "big", signed=True)
    return value


def _summary(values: Sequence[tuple[Any, str]]) -> dict[str, Any]:
    """What Iceberg's writers say of the values of a field: NaN is in no bound."""
    plain, kind = [value for value, _ in values], values[0][1]
    present = _bounded(plain)
    return {
        "contains_null": None in plain,
        "contains_nan": len(present) + plain.count(None) < len(plain),
        "lower_bound": single_value(min(present), kind) if present else None,
        "upper_bound": single_value(max(present), kind) if present else None,
    }
