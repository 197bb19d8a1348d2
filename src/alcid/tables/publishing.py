"""What was staged becomes part of the table: data files first, then the bundles that tell of them.

A folder has no commit, so files appear one after the other; each is whole. If one of them cannot be
moved, those that were are removed again. What is left of an append that was killed is either in its
staging folder or a file of the table like any other.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa

from alcid.bundle import Bundle, BundleSet, merge
from alcid.columns import ColumnTypes
from alcid.errors import (
    AlcidWarning,
    FormatError,
    NameTakenError,
    StorageError,
    UnsupportedError,
)
from alcid.formats.source import BytesSource
from alcid.storage import Storage
from alcid.storage.backend import Known
from alcid.storage.listing import is_hidden
from alcid.tables.bundle_folder import BundleFolder, new_name
from alcid.tables.partitions import Partitions
from alcid.tables.staging import StagedBundle, StagedFile

__all__ = ["check_paths", "move_files", "publish_bundle", "with_versions"]

_THREADS = 16


def check_paths(
    before: pa.Array, added: Sequence[str], partition_types: ColumnTypes | None
) -> None:
    """See that a table can be read as before when it has more files.

    Args:
        before: The paths of its files; the partition columns of these, and their types, stay.
        added: The paths to come.
        partition_types: Those that the table was opened with.

    Raises:
        UnsupportedError: A path that readers pass over, or a type would change.
        LiteralError: A value is none of the type of its column.
        FormatError: Other partition columns.
    """
    for path in added:
        for name in path.split("/"):
            if is_hidden(name):
                raise UnsupportedError(f"{path}: readers pass over names like {name}")
    new = pa.array(added, before.type)
    after = Partitions.of(pa.concat_arrays([before, new]), partition_types)
    if not len(before):
        return
    for column in Partitions.of(before, partition_types).columns:
        found = after.types[column.name]
        if found != column.data_type:
            values = Partitions.of(new).to_table().column(column.name).unique().to_pylist()
            raise UnsupportedError(
                f"partition column {column.name}: found {values[:3]}, "
                f"expected {column.data_type} as in the table, which would become {found}"
            )


def move_files(storage: Storage, files: Sequence[StagedFile]) -> list[Known]:
    """Move files to where they belong, all or none, and say what the storage says of them then.

    Raises:
        StorageError: One could not be moved; those that were are removed again.
    """
    begun: list[str] = []

    def move(file: StagedFile) -> Known:
        begun.append(file.path)
        try:
            storage.move(file.staged, file.path)
        except NameTakenError:
            begun.remove(file.path)  # it is not ours
            raise
        return storage.stat(file.path)

    try:
        with ThreadPoolExecutor(_THREADS if storage.remote else 1) as pool:
            futures = [pool.submit(move, file) for file in files]
            try:
                return [future.result() for future in futures]
            finally:
                for future in futures:
                    future.cancel()
    except BaseException:
        storage.delete(begun)
        raise


def publish_bundle(
    storage: Storage, folder: BundleFolder, staged: StagedBundle, found: Sequence[Known]
) -> int:
    """Let a bundle count, after its files were moved, and say how long it is.

    The rows are there by now: that their indexes are not is told by a warning.

    Args:
        storage: That of the data, where the bundle was staged.
        folder: Where the bundles of the table are.
        staged: The bundle.
        found: What the storage says of its files.
    """
    same = all(
        known == (file.size, file.version) for known, file in zip(found, staged.files, strict=True)
    )
    try:
        if same and folder.storage is storage:
            storage.move(staged.bundle, folder.path(new_name()))
            return staged.size
        data = storage.source(staged.bundle, staged.size).read(0, staged.size)
        if not same:
            data = with_versions(data, staged.files, found)
        folder.put(data)
    except (StorageError, FormatError) as error:
        warnings.warn(
            f"rows were appended, but not their indexes, which build_indexes makes: {error}",
            AlcidWarning,
            stacklevel=2,
        )
        return 0
    return len(data)


def with_versions(data: bytes, files: Sequence[StagedFile], found: Sequence[Known]) -> bytes:
    """A bundle with other versions of its files.

    Raises:
        FormatError: A file has another size than before, or the bundle is damaged.
    """
    for file, known in zip(files, found, strict=True):
        if known.size != file.size or known.version is None:
            raise FormatError(
                "changed while it was moved", file=file.path, found=known, expected=file.size
            )

    bundles = BundleSet(
        [Bundle.open(BytesSource(data, "staged bundle"))],
        [file.path for file in files],
        np.array([file.size for file in files], np.int64),
        [file.version or "" for file in files],
        strict=True,
    )
    made = io.BytesIO()
    merge(bundles, made, versions=[known.version or "" for known in found])
    return made.getvalue()
