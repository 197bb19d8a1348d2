"""Tables whose metadata have paths without a root, which is known from the catalog."""

from __future__ import annotations

import pickle
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from alcid.errors import UnsupportedError
from alcid.tables.iceberg.file_io import FileIO
from alcid.tables.iceberg_table import IcebergTable
from tests.tables.iceberg.memory_catalog import MemoryCatalog

BLOOM = {"file-index.bloom-filter.columns": "id"}


class RelativeCatalog(MemoryCatalog):
    """A table `lake/t` below the working folder."""

    def _relative(self, path: str) -> str:
        return "lake" + path.removeprefix(str(self.folder.parent))

    def add(self, *arguments: Any, **named: Any) -> int:
        number = super().add(*arguments, **named)
        self.metadata["location"] = self._relative(str(self.folder))
        for file in self.files[number]:
            file["file_path"] = self._relative(file["file_path"])
        return number

    def working_folder(self) -> str:
        return f"file:{self.folder.parent.parent}"

    def metadata_location(self, name: str) -> str:
        return self._relative(super().metadata_location(name))


def test_files_are_found_below_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    catalog = RelativeCatalog(tmp_path / "lake" / "t")
    catalog.add({"a.parquet": {"id": [1, 2], "name": ["x", "y"]}})
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)  # Python may have moved on since Java was started
    table = IcebergTable(catalog)
    assert table.location == str(tmp_path / "lake" / "t")
    assert table.build_indexes(BLOOM, progress=False).indexed == 1
    assert [puffin.name for puffin in catalog.puffins()] == list(catalog.listed().values())
    assert table.scan("id = 2").to_arrow().to_pylist() == [{"id": 2, "name": "y"}]
    assert not table.verify().problems
    assert not table.clean(older_than=timedelta(0)).removed
    assert table.scan("id = 3").to_arrow().num_rows == 0
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("lake/t", "file:/home/ada/lake/t"),
        ("./lake/t", "file:/home/ada/lake/t"),
        ("../lake/t", "file:/home/lake/t"),
        ("/lake/t", "/lake/t"),
        ("s3://lake/t", "s3://lake/t"),
    ],
)
def test_paths_are_joined_as_hadoop_joins_them(path: str, expected: str) -> None:
    file_io = pickle.loads(pickle.dumps(FileIO(None, "file:/home/ada")))
    assert file_io.absolute(path) == expected


def test_without_a_working_folder_there_is_no_place() -> None:
    with pytest.raises(UnsupportedError, match="lake/t: found a relative path"):
        FileIO().find("lake/t")
    with pytest.raises(UnsupportedError, match="lake/a: found a relative path"):
        FileIO().below("/lake", pa.array(["lake/a"]))
