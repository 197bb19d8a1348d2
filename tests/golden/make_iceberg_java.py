"""Make the golden files of Iceberg's Puffin: deletion vectors, statistics, and the container.

    python -m tests.golden.make_iceberg_java

Needs Java, Maven, PySpark and the network. Takes two minutes; writes the same files every time.
"""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from tests.golden.iceberg_jvm import VERSION, IcebergJvm, iceberg_jvm
from tests.golden.iceberg_tables import write_tables
from tests.golden.java_puffin import WRITER, write_puffins
from tests.golden.positions import SETS, WIDE_SETS, positions_of
from tests.golden.values import Json, save

GOLDEN = Path(__file__).resolve().parent
VECTORS, PUFFIN, THETA = (
    GOLDEN / folder / f"iceberg-java-{VERSION}"
    for folder in ("deletion-vectors", "puffin", "theta")
)
# Given as ranges; Java keeps runs where an array would have the same size.
RANGES: dict[str, list[list[int]]] = {
    "ranges": [[0, 3], [10, 12], [70_000, 70_002]],
    "ranges_wide": [[5, 8], [2**32 - 2, 2**32 + 3]],
}


def write_vectors(jvm: IcebergJvm) -> None:
    """Blobs of deletion vectors."""
    for name, spec in (SETS | WIDE_SETS).items():
        _save_vector(jvm, name, jvm.position_index(positions_of(spec)), spec, {})
    for name, ranges in RANGES.items():
        index = jvm.position_index([])
        delete = jvm.method("org.apache.iceberg.deletes.BitmapPositionDeleteIndex", "delete", 2)
        for first, end in ranges:
            delete.bindTo(index).invokeWithArguments([first, end])
        _save_vector(jvm, name, index, ranges, {"exact": False})


def _save_vector(
    jvm: IcebergJvm, name: str, index: object, spec: Json, extra: dict[str, Json]
) -> None:
    data = jvm.serialize(index)
    facts: dict[str, Json] = {"kind": "deletion_vector", **WRITER, "bits": 64, **extra}
    facts |= {"cardinality": len(positions_of(spec)), "length": len(data), "positions": spec}
    save(VECTORS, f"vector64_{name}", facts, data)


def main() -> None:
    """Make the folders again."""
    for folder in (VECTORS, PUFFIN, THETA):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    with iceberg_jvm() as jvm, tempfile.TemporaryDirectory() as temporary:
        write_vectors(jvm)
        write_puffins(jvm, PUFFIN, Path(temporary))
    write_tables(PUFFIN, THETA)
    for folder in (VECTORS, PUFFIN, THETA):
        files = sorted(folder.iterdir())
        size = sum(file.stat().st_size for file in files)
        print(f"{len(files)} files, {size} bytes in {folder.relative_to(GOLDEN)}")


if __name__ == "__main__":
    main()
