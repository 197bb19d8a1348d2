"""Which files may have a value at all: indexes that are asked for all files at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import numpy as np

from alcid.plan.columns import ColumnGroup
from alcid.plan.leaves import Leaf
from alcid.plan.recorder import Recorder
from alcid.plan.table_files import Integers, TableFiles
from alcid.plan.verdict import Mask
from alcid.predicate import And, Or, Predicate

__all__ = ["Probing"]


class Probing(ABC):
    """Asks the indexes of one type for the values of a predicate, leaf by leaf."""

    index_type: str

    def __init__(self, table: TableFiles, leaves: Mapping[int, Leaf], recorder: Recorder) -> None:
        """Prepare; nothing is asked yet."""
        self._table, self._leaves, self._recorder = table, leaves, recorder

    def may_match(self, predicate: Predicate, files: Integers) -> Mask:
        """For each of some files, whether a row may match."""
        match predicate:
            case And(parts):
                found = np.ones(len(files), bool)
                for part in parts:
                    found[found] = self.may_match(part, files[found])
                return found
            case Or(parts):
                # Legs that no index can rule out make the others useless.
                found = np.zeros(len(files), bool)
                for part in sorted(parts, key=self._has_index):
                    found[~found] = self.may_match(part, files[~found])
                return found
        leaf = self._leaves.get(id(predicate))
        if leaf is None:
            return np.ones(len(files), bool)
        possible: Mask = leaf.verdict.possible[files]
        for group in leaf.groups:
            asked = possible & ~leaf.verdict.certain[files] & group.files[files]
            if asked.any():
                possible[asked] = self._of_group(leaf, group, files[asked])
        return possible

    def _has_index(self, predicate: Predicate) -> bool:
        leaves = [self._leaves[id(node)] for node in predicate.walk() if id(node) in self._leaves]
        return any(
            self.index_type in self._table.indexes.types(group.name)
            for leaf in leaves
            for group in leaf.groups
            if group.name is not None
        )

    def _of_group(self, leaf: Leaf, group: ColumnGroup, files: Integers) -> Mask:
        is_known = group.name is not None and group.data_type is not None and not group.problem
        if not is_known or self.index_type not in self._table.indexes.types(group.name or ""):
            return np.ones(len(files), bool)
        return self._probe(leaf, group, files)

    @abstractmethod
    def _probe(self, leaf: Leaf, group: ColumnGroup, files: Integers) -> Mask:
        """For each of some files of a group, of which some have an index: as `may_match`."""
