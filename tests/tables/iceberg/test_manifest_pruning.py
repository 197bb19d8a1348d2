"""Manifests that a predicate needs: those with a matching row are always among them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from alcid.errors import ColumnError, PredicateError
from alcid.expressions import RowFilter, RowSchema, bind, normalize, parse
from alcid.scan import left_by_statistics
from alcid.storage import Storage
from alcid.tables.iceberg import catalog as catalog_module
from alcid.tables.iceberg.catalog import SnapshotManifests
from alcid.tables.iceberg.file_io import FileIO
from alcid.tables.iceberg.manifest_pruning import ManifestRanges
from alcid.tables.iceberg.metadata.manifests import ManifestFile, PartitionSummary
from alcid.tables.iceberg.metadata.schema import PartitionField, PartitionSpec
from alcid.tables.iceberg_table import IcebergTable
from tests.tables.iceberg.manifest_catalog import ManifestCatalog, single_value
from tests.tables.iceberg.metadata.peer import pyiceberg_transform

KINDS = {
    "m": "int",
    "id": "long",
    "name": "string",
    "day": "date",
    "at": "timestamp",
    "price": "decimal(9, 2)",
    "f": "double",
}
FIELDS = [(name, number, kind) for number, (name, kind) in enumerate(KINDS.items(), 1)]
TYPES = {
    "m": pa.int32(),
    "id": pa.int64(),
    "name": pa.string(),
    "day": pa.date32(),
    "at": pa.timestamp("us"),
    "price": pa.decimal128(9, 2),
    "f": pa.float64(),
}
TRANSFORMS = {
    "id": ("identity", "bucket[4]", "truncate[10]"),
    "name": ("identity", "bucket[4]", "truncate[2]"),
    "day": ("identity", "day", "month", "year"),
    "at": ("identity", "hour", "day", "month"),
    "price": ("identity", "truncate[100]", "bucket[3]"),
    "f": ("identity",),
}
_MANIFESTS, _ROWS = 12, 5


@pytest.fixture(autouse=True)
def every_table_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog_module, "FEW_MANIFESTS", 0)


def _row(rng: random.Random, number: int) -> dict[str, Any]:
    """A row whose values are near those of the others in its manifest; some are null."""
    base = 20 * number - 100
    near = base + rng.randrange(12)
    row = {
        "id": near,
        "name": rng.choice([f"n{near:+04d}", f"é{number}", "", f"{number}\U0001f600x"]),
        "day": date(1969, 10, 1) + timedelta(days=near),
        "at": datetime(1969, 12, 31) + timedelta(hours=near, microseconds=rng.randrange(99)),
        "price": Decimal(near) + Decimal(rng.randrange(100)) / 100,
        "f": rng.choice([float(near), float("nan"), -0.0, 0.0, float("inf")]),
    }
    return {name: None if rng.random() < 0.1 else value for name, value in row.items()}


def _partition_value(value: Any, kind: str, transform: str) -> tuple[Any, str]:
    """The value of a partition field, and its type."""
    stored = (
        "int" if transform.startswith("bucket") or transform in ("hour", "month", "year") else kind
    )
    stored = "date" if transform == "day" else stored
    if value is None:
        return None, stored
    if isinstance(value, datetime):
        value = int(pa.scalar(value, pa.timestamp("us")).cast(pa.int64()).as_py())
    elif isinstance(value, date):
        value = (value - date(1970, 1, 1)).days
    if transform != "identity":
        value = pyiceberg_transform(transform, kind.partition("(")[0], value)
    return value, stored


def _make(folder: Path, rng: random.Random) -> ManifestCatalog:
    """A table whose specs change; each file has the rows of one partition."""
    made = ManifestCatalog(folder, FIELDS)
    for number in range(_MANIFESTS):
        if number % 4 == 0:
            columns = rng.sample(sorted(TRANSFORMS), rng.choice([1, 2, 2]))
            made.set_spec(*((column, rng.choice(TRANSFORMS[column])) for column in columns))
        ids = {field["source-id"]: field["transform"] for field in made.spec}
        names = {made.columns[name]: name for name in KINDS}
        groups: dict[str, tuple[list[tuple[Any, str]], list[dict[str, Any]]]] = {}
        for _ in range(_ROWS):
            row = _row(rng, number) | {"m": number}
            partition = [
                _partition_value(row[names[source]], KINDS[names[source]], transform)
                for source, transform in ids.items()
            ]
            groups.setdefault(repr(partition), (partition, []))[1].append(row)
        files = {
            f"{number:02}-{position}.parquet": {name: [row[name] for row in rows] for name in KINDS}
            for position, (_, rows) in enumerate(groups.values())
        }
        made.add_rows(files, TYPES, [partition for partition, _ in groups.values()])
    return made


def _queries(rng: random.Random, rows: Sequence[dict[str, Any]]) -> list[str]:
    """Comparisons with values of the table and others near them."""

    def literal(value: Any) -> str:
        match value:
            case str():
                return f"'{value}'"
            case datetime():
                return f"TIMESTAMP'{value}'"
            case date():
                return f"DATE'{value}'"
            case float():
                return f"CAST('{value}' AS DOUBLE)"
        return f"{value}"

    leaves = []
    for name in TRANSFORMS:
        present = [row[name] for row in rows if row[name] is not None]
        one, two = (literal(rng.choice(present)) for _ in range(2))
        operator = rng.choice(["=", "<", "<=", ">", ">=", "<>", "<=>"])
        leaves += [
            f"{name} {operator} {one}",
            f"{name} = {two}",
            f"{name} IN ({one}, {two})",
            f"{name} BETWEEN {one} AND {two}",
            f"{name} IS {rng.choice(['', 'NOT '])}NULL",
        ]
    leaves += ["name LIKE 'n+1%'", "name LIKE '%7'", "day = '1970-01-05'", "id + 1 = 5"]
    pairs = [
        f"({rng.choice(leaves)}) {rng.choice(['AND', 'OR'])} NOT ({rng.choice(leaves)})"
        for _ in range(8)
    ]
    return [*leaves, *pairs]


@pytest.mark.parametrize("seed", range(12))
def test_no_manifest_with_a_matching_row_is_left_out(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    made = _make(tmp_path / "t", rng)
    table = IcebergTable(made)
    rows = IcebergTable(made).scan(use_indexes=False).to_arrow()
    snapshot = table.metadata.find()
    assert snapshot is not None
    manifests = SnapshotManifests(made, FileIO(), table.metadata, snapshot).manifests
    types = {name: one.data_type for name, one in table.snapshot.columns.columns.items()}
    schema = RowSchema(rows.schema, {name: kind for name, kind in types.items() if kind})
    pruned = 0
    for where in _queries(rng, rows.to_pylist()):
        predicate = bind(normalize(parse(where)), schema.type_of)
        matching = rows.filter(pa.array(RowFilter(predicate, schema).matching(rows)))
        needed = {manifests[number].path for number in set(matching["m"].to_pylist())}
        chosen = {manifest.path for manifest in table._needed(manifests, where)}
        assert needed <= chosen, where
        pruned += len(manifests) - len(chosen)
    assert pruned > 0


def test_rows_are_those_of_all_manifests(tmp_path: Path) -> None:
    rng = random.Random(77)
    made = ManifestCatalog(tmp_path / "t", FIELDS)
    made.set_spec(("id", "identity"))
    for number in range(20):
        rows = [_row(rng, number) | {"m": number, "id": number} for _ in range(4)]
        columns = {name: [row[name] for row in rows] for name in KINDS}
        made.add_rows({f"{number:02}.parquet": columns}, TYPES, [[(number, "long")]])
    whole = IcebergTable(made)
    assert len(whole.snapshot.entries.data) == 20
    for where in ("id = 7", "id IN (3, 4) AND price > -1000", "id < 3 OR id > 18"):
        table = IcebergTable(made)
        scan = table.scan(where)
        assert len(scan._files.sizes) < 5
        assert not table._is_open
        rows_of = [one.to_arrow().drop_columns(["f"]) for one in (scan, whole.scan(where))]
        assert rows_of[0] == rows_of[1]
        assert scan.count() == whole.count(where)
        (note,) = (note for note in scan.explain().notes if "manifests" in note)
        assert note == (
            f"{20 - len(scan._files.sizes)} of 20 manifests are not read: their partition"
            " summaries rule out the predicate"
        )
    table = IcebergTable(made)
    assert len(table.scan("id = 7", use_indexes=False)._files.sizes) == 20
    assert table.files == 20
    assert len(table.scan("id = 7")._files.sizes) == 20  # which were read already
    for where in ("id >= 5", "price > 0", "true"):
        assert len(IcebergTable(made).scan(where)._files.sizes) == 20
    assert len(IcebergTable(made).scan("id = 1000")._files.sizes) == 0
    assert IcebergTable(made).count("id = 1000") == 0
    assert IcebergTable(made).scan("id = 1000").to_arrow().num_rows == 0
    assert [one.fresh for one in IcebergTable(made).indexes()] == []
    assert not IcebergTable(made).verify().problems


def test_errors_of_predicates_are_those_of_scans(tmp_path: Path) -> None:
    made = ManifestCatalog(tmp_path / "t", FIELDS)
    made.set_spec(("id", "identity"))
    made.add_rows({"a.parquet": {name: [None] for name in KINDS}}, TYPES, [[(None, "long")]])
    with pytest.raises(ColumnError, match="nothing"):
        IcebergTable(made).scan("nothing = 1")
    with pytest.raises(PredicateError):
        IcebergTable(made).scan("id ===== 1")


def _left(
    where: str, summaries: Sequence[PartitionSummary | None] | None, *fields: tuple[int, str]
) -> bool:
    """Whether one manifest with some summaries is left."""
    spec = PartitionSpec(
        0, tuple(PartitionField(s, 1000 + n, f"p{n}", t) for n, (s, t) in enumerate(fields))
    )
    catalog_metadata = _METADATA.load()
    manifest = ManifestFile("m", summaries=None if summaries is None else tuple(summaries))
    ranges = ManifestRanges(
        Storage.open(_METADATA.folder), [manifest], {0: spec}, catalog_metadata.schema
    )
    (left,) = left_by_statistics(where, ranges).tolist()
    return bool(left)


@pytest.fixture(autouse=True, scope="module")
def _metadata(tmp_path_factory: pytest.TempPathFactory) -> None:
    global _METADATA  # noqa: PLW0603
    _METADATA = ManifestCatalog(tmp_path_factory.mktemp("m") / "t", FIELDS)


_METADATA: ManifestCatalog
ID, NAME, AT, PRICE, F = 2, 3, 5, 6, 7


def _of(lower: Any, upper: Any, kind: str, *, null: bool = False) -> PartitionSummary:
    stored = [
        bound if isinstance(bound, bytes | None) else single_value(bound, kind)
        for bound in (lower, upper)
    ]
    return PartitionSummary(null, *stored)


def test_summaries_rule_out_what_they_exclude() -> None:
    ids = _of(10, 20, "long")
    assert _left("id = 15", [ids], (ID, "identity"))
    assert not _left("id = 21", [ids], (ID, "identity"))
    assert not _left("id IS NULL", [ids], (ID, "identity"))
    assert _left("id IS NULL", [_of(10, 20, "long", null=True)], (ID, "identity"))
    assert not _left("id = 21", [_of(10, 20, "long", null=True)], (ID, "identity"))
    assert _left("id = 29", [ids], (ID, "truncate[10]"))
    assert not _left("id = 30", [ids], (ID, "truncate[10]"))
    assert not _left("id = 9", [ids], (ID, "truncate[10]"))
    assert _left("name = 'n1x'", [_of("n0", "n1", "string")], (NAME, "truncate[2]"))
    assert not _left("name = 'n3'", [_of("n0", "n1", "string")], (NAME, "truncate[2]"))
    hours = _of(24, 26, "int")
    assert _left("at = TIMESTAMP'1970-01-02 02:59:59'", [hours], (AT, "hour"))
    assert not _left("at = TIMESTAMP'1970-01-02 03:00:00'", [hours], (AT, "hour"))


def test_one_bucket_rules_out_others() -> None:
    # 34 as a long is in bucket 3 of 16, as Iceberg's specification says of its hash.
    assert _left("id = 34", [_of(3, 3, "int")], (ID, "bucket[16]"))
    assert not _left("id = 34", [_of(4, 4, "int")], (ID, "bucket[16]"))
    assert _left("id = 34", [_of(4, 5, "int")], (ID, "bucket[16]"))
    assert _left("id > 34", [_of(4, 4, "int")], (ID, "bucket[16]"))


@pytest.mark.parametrize(
    ("summaries", "field", "where"),
    [
        (None, (ID, "identity"), "id = 99"),
        ([], (ID, "identity"), "id = 99"),
        ([None], (ID, "identity"), "id = 99"),
        ([_of(1, 2, "long"), _of(1, 2, "long")], (ID, "identity"), "id = 99"),
        ([_of(2, 1, "long")], (ID, "identity"), "id = 99"),
        ([_of(b"abc", 1, "long")], (ID, "identity"), "id = 99"),
        ([_of(1, b"abc", "long")], (ID, "identity"), "id = 0"),
        ([_of(None, 2, "long")], (ID, "identity"), "id = 99"),
        ([_of(1, None, "long")], (ID, "identity"), "id = 0"),
        ([_of(None, None, "long")], (ID, "identity"), "id IS NULL"),
        ([_of(1, 2, "long")], (ID, "void"), "id = 99"),
        ([_of(1, 2, "long")], (ID, "cube[2]"), "id = 99"),
        ([_of(0, (1 << 63) - 3, "long")], (ID, "truncate[10]"), "id = -9223372036854775808"),
        ([_of(b"\xff", b"\xff", "string")], (NAME, "truncate[2]"), "name = 'a'"),
        ([_of(Decimal(1), Decimal(2), "", null=True)], (PRICE, "truncate[100]"), "price = 9"),
        ([_of(1.0, 2.0, "double")], (F, "identity"), "f = CAST('nan' AS DOUBLE)"),
        ([_of(1.0, 2.0, "double")], (F, "identity"), "f = 0"),
    ],
)
def test_a_doubtful_summary_keeps_its_manifest(
    summaries: Sequence[PartitionSummary | None] | None, field: tuple[int, str], where: str
) -> None:
    assert _left(where, summaries, field)
