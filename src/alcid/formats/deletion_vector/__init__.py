"""Deletion vectors: the deleted rows of a data file, by themselves and in Paimon's index files."""

from __future__ import annotations

from alcid.formats.deletion_vector.file import (
    DeletionVectorFile,
    DeletionVectorRange,
    WrittenVectors,
)
from alcid.formats.deletion_vector.vector import DeletionVector

__all__ = ["DeletionVector", "DeletionVectorFile", "DeletionVectorRange", "WrittenVectors"]
