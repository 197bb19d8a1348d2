"""Copies of Iceberg tables that were written elsewhere, as tables of a catalog in a folder.

Metadata name files by absolute paths on the machine that wrote them. In a copy, each path leads to
the file of the copy whose own path is its end: `s3://lake/t/data/a.parquet` to `data/a.parquet`.
"""

from __future__ import annotations

import atexit
import gzip
import io
import json
import shutil
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

import alcid
from alcid.tables.iceberg_table import IcebergTable
from tests.iceberg.lake import LAKE, lake_settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["copy_table", "open_copy", "rows_by_iceberg"]

_DATABASE = "corpus"
_FILE_PATH_ID = 2147483546  # of position delete files; its bounds are paths, too
_GZIP = b"\x1f\x8b"
_PUFFIN_TAIL = 12


@cache
def _warehouse() -> Path:
    """The folder of the catalog, for this process."""
    folder = Path(tempfile.mkdtemp(prefix="alcid-corpus-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def _session() -> SparkSession:
    """A session with Iceberg's own runtime."""
    settings = lake_settings(_warehouse())
    if not settings:
        raise RuntimeError("Iceberg's runtime cannot be had: no table of Iceberg can be asked")
    return alcid.session(config={**settings, "spark.sql.session.timeZone": "UTC"})


def open_copy(copy: Path) -> IcebergTable:
    """A copy as a table of Alcid."""
    return alcid.iceberg(f"{LAKE}.{_DATABASE}.`{copy.name}`", _session())


def rows_by_iceberg(copy: Path) -> pa.Table:
    """All rows of a copy, as Iceberg's own reader gives them."""
    rows: pa.Table = _session().table(f"{LAKE}.{_DATABASE}.`{copy.name}`").toArrow()
    return rows


def copy_table(source: Path) -> Path:
    """Copy a table into the catalog; its current metadata are those that were written last."""
    copy = _warehouse() / _DATABASE / source.name.replace(".", "_")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(source, copy)
    for checksum in list(copy.rglob(".*.crc")):
        checksum.unlink()
    files = [path for path in copy.rglob("*") if path.is_file()]
    moved = _Moved(copy, {str(path.relative_to(copy)): str(path) for path in files})
    metadata = [path for path in files if ".metadata.json" in path.name]
    current = max(map(_json, metadata), key=lambda content: int(content.get("last-updated-ms", 0)))
    sizes = {str(path): size for path in files if (size := moved.rewrite_deletes(path)) is not None}
    for path in files:
        if path.suffix == ".avro" and path.parent.name == "metadata":
            moved.rewrite_avro(path, sizes)
    for path in metadata:
        path.unlink(missing_ok=True)
    content = {**moved.rewritten(current), "location": str(copy)}
    (copy / "metadata" / "v1.metadata.json").write_text(json.dumps(content))
    (copy / "metadata" / "version-hint.text").write_text("1")
    return copy


class _Moved:
    """Where the files of a copied table lie now."""

    def __init__(self, copy: Path, files: Mapping[str, str]) -> None:
        self._copy, self._files = copy, files

    def rewritten(self, value: Any) -> Any:
        """A value with the paths within it led to the copy."""
        match value:
            case str() if "/" in value:
                return self._path(value)
            case dict():
                return {key: self.rewritten(item) for key, item in value.items()}
            case list():
                return [self.rewritten(item) for item in value]
        return value

    def _path(self, path: str) -> str:
        parts = path.split("/")
        for start in range(len(parts)):
            file = self._files.get("/".join(parts[start:]))
            if file is not None:
                return file
        return path

    def rewrite_deletes(self, path: Path) -> int | None:
        """Rewrite the paths in a delete file; its new size, or None for any other file."""
        if path.suffix == ".puffin":
            self._rewrite_puffin(path)
        elif path.suffix == ".parquet" and {"file_path", "pos"} <= {*pq.read_schema(path).names}:
            rows = pq.read_table(path)
            number = rows.column_names.index("file_path")
            paths = pa.array(self.rewritten(rows["file_path"].to_pylist()), pa.string())
            pq.write_table(rows.set_column(number, rows.schema.field(number), paths), path)
        else:
            return None
        return path.stat().st_size

    def _rewrite_puffin(self, path: Path) -> None:
        data = path.read_bytes()
        if not data.startswith(b"PFA1"):  # a bare vector, as some writers had it
            return
        length = int.from_bytes(data[-_PUFFIN_TAIL : 4 - _PUFFIN_TAIL], "little")
        start = len(data) - _PUFFIN_TAIL - length
        footer = json.dumps(self.rewritten(json.loads(data[start:-_PUFFIN_TAIL]))).encode()
        path.write_bytes(data[:start] + footer + len(footer).to_bytes(4, "little") + data[-8:])

    def rewrite_avro(self, path: Path, sizes: Mapping[str, int]) -> None:
        """Rewrite the paths in a manifest or a manifest list, and the sizes of delete files."""
        reader = fastavro.reader(io.BytesIO(path.read_bytes()))
        kept = {key: text for key, text in reader.metadata.items() if key[:5] != "avro."}
        schema = json.loads(reader.metadata["avro.schema"])  # with the ids of its fields
        records = [self.rewritten(record) for record in reader]
        for record in records:
            file = record.get("data_file")
            if file is not None:
                if file["file_path"] in sizes:
                    file["file_size_in_bytes"] = sizes[file["file_path"]]
                for bounds in ("lower_bounds", "upper_bounds"):
                    if file.get(bounds):
                        file[bounds] = [
                            bound for bound in file[bounds] if bound["key"] != _FILE_PATH_ID
                        ]
        written = io.BytesIO()
        fastavro.writer(written, schema, records, codec="deflate", metadata=kept)
        path.write_bytes(written.getvalue())


def _json(path: Path) -> dict[str, Any]:
    data = path.read_bytes()
    content: dict[str, Any] = json.loads(gzip.decompress(data) if data[:2] == _GZIP else data)
    return content
