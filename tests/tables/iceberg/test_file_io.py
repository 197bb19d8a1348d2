"""Settings of S3 in catalogs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from alcid.errors import StorageError
from alcid.storage import Storage
from alcid.tables.iceberg.file_io import s3_options
from alcid.tables.iceberg_table import IcebergTable
from tests.tables.iceberg.memory_catalog import MemoryCatalog

KEYS = {"s3.access-key-id": "a", "s3.secret-access-key": "b", "s3.session-token": "c"}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, {}),
        (
            {**KEYS, "s3.endpoint": "http://store:9000", "client.region": "x", "warehouse": "w"},
            {
                "access_key": "a",
                "secret_key": "b",
                "session_token": "c",
                "endpoint_override": "http://store:9000",
                "region": "x",
            },
        ),
        (
            {"fs.s3a.access.key": "a", "fs.s3a.secret.key": "b", "fs.s3a.endpoint": "store:9000"},
            {"access_key": "a", "secret_key": "b", "endpoint_override": "https://store:9000"},
        ),
        (
            {"fs.s3a.endpoint": "store:9000", "fs.s3a.connection.ssl.enabled": "false"},
            {"endpoint_override": "http://store:9000"},
        ),
        ({"fs.s3a.endpoint": "s3.amazonaws.com", "fs.s3a.endpoint.region": "x"}, {"region": "x"}),
        (
            {
                "fs.s3a.access.key": "a",
                "fs.s3a.bucket.lake.access.key": "b",
                "fs.s3a.bucket.other.access.key": "c",
            },
            {"access_key": "b"},
        ),
        (
            {"fs.s3a.access.key": "x", "fs.s3a.session.token": "y", "s3.access-key-id": "a"},
            {"access_key": "a"},
        ),
    ],
)
def test_options_of_settings(settings: dict[str, str], expected: dict[str, str]) -> None:
    assert s3_options("s3://lake/t", settings) == expected


def test_credentials_that_the_catalog_gives_win_where_they_are_for() -> None:
    credentials = [
        ("s3", {"s3.access-key-id": "1", "s3.secret-access-key": "2"}),
        ("s3://lake/other", {"s3.access-key-id": "3", "s3.secret-access-key": "4"}),
    ]
    options = s3_options("s3://lake/t", KEYS | {"client.region": "x"}, credentials)
    assert options == {"access_key": "1", "secret_key": "2", "region": "x"}


class RemoteCatalog(MemoryCatalog):
    """A table whose metadata say that it is in S3."""

    options: Mapping[str, Any] = {}

    def storage_options(self, location: str) -> Mapping[str, Any]:
        assert location == "s3://lake/t"
        return self.options


EXAMPLE = '{"access_key": ..., "secret_key": ..., "endpoint_override": ..., "region": ...}'
NOTHING = "neither the catalog nor Hadoop's settings have keys or an endpoint"
READ_WITH = "read with endpoint_override of the catalog"
ENDPOINT = {"endpoint_override": "http://127.0.0.1:9"}


@pytest.mark.parametrize(
    ("options", "storage_options", "advice"),
    [
        ({}, None, f"; {NOTHING}: give storage_options, as {EXAMPLE}"),
        (ENDPOINT, None, f"; {READ_WITH}: give storage_options for others, as {EXAMPLE}"),
        ({}, ENDPOINT, ""),
    ],
)
def test_the_catalogs_options_are_taken_and_the_error_says_what_to_give(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, str],
    storage_options: dict[str, str] | None,
    advice: str,
) -> None:
    catalog = RemoteCatalog(tmp_path / "t")
    catalog.options = options
    catalog.add({"a.parquet": {"id": [1], "name": ["x"]}})
    catalog.metadata["location"] = "s3://lake/t"
    catalog.metadata["snapshots"][0]["manifest-list"] = "s3://lake/t/metadata/list.avro"
    asked: list[bool] = []

    def fail(storage: Storage, *rest: object) -> None:
        asked.append(storage.has_options)
        raise StorageError("could not be read: 403", file=f"{storage.location}{rest[0]}")

    monkeypatch.setattr(Storage, "read_heads", fail)
    with pytest.raises(StorageError) as raised:
        IcebergTable(catalog, storage_options=storage_options).count()
    assert asked == [bool(options or storage_options)]
    assert raised.value.problem == f"could not be read: 403{advice}"
