"""Deletion vectors: the deleted rows of a data file, by themselves and in Paimon's index files."""

from __future__ import annotations

from alcid.formats.deletion_vector.file import DeletionVectorFile
from alcid.formats.deletion_vector.vector import DeletionVector
from alcid.formats.deletion_vector.writer import DeletionVectorRange, WrittenVectors

__all__ = ["DeletionVector", "DeletionVectorFile", "DeletionVectorRange", "WrittenVectors"]
