"""Bloom filters: which files may have a value at all, for all files in one round of reads."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from alcid.formats.file_index.keys import key_type
from alcid.plan.columns import ColumnGroup
from alcid.plan.cost import listed_keys
from alcid.plan.leaves import Leaf
from alcid.plan.recorder import Recorder
from alcid.plan.table_files import Integers, TableFiles
from alcid.plan.verdict import Mask
from alcid.predicate import And, Or, Predicate, Within

__all__ = ["Blooms"]

_TYPE = "bloom-filter"
_BITS = 8  # that are looked at for a key, about
_BLOCK = 1 << 10


class Blooms:
    """Asks the bloom filters of files, as far as that is cheaper than to read the files."""

    def __init__(
        self,
        table: TableFiles,
        leaves: Mapping[int, Leaf],
        scan: Integers,
        recorder: Recorder,
    ) -> None:
        """Prepare; `scan` is what is read of each file of the table without indexes."""
        self._table, self._leaves, self._scan = table, leaves, scan
        self._recorder = recorder

    def may_match(self, predicate: Predicate, files: Integers) -> Mask:
        """For each of some files, whether a row may match."""
        match predicate:
            case And(parts):
                found = np.ones(len(files), bool)
                for part in parts:
                    found[found] = self.may_match(part, files[found])
                return found
            case Or(parts):
                # Legs that no filter can rule out make the others useless.
                found = np.zeros(len(files), bool)
                for part in sorted(parts, key=self._has_filter):
                    found[~found] = self.may_match(part, files[~found])
                return found
        leaf = self._leaves.get(id(predicate))
        if leaf is None:
            return np.ones(len(files), bool)
        possible: Mask = leaf.verdict.possible[files]
        for group in leaf.groups:
            asked = possible & ~leaf.verdict.certain[files] & group.files[files]
            if asked.any():
                possible[asked] = self._probe(leaf, group, files[asked])
        return possible

    def _has_filter(self, predicate: Predicate) -> bool:
        leaves = [self._leaves[id(node)] for node in predicate.walk() if id(node) in self._leaves]
        return any(
            _TYPE in self._table.indexes.types(group.name)
            for leaf in leaves
            for group in leaf.groups
            if group.name is not None
        )

    def _probe(self, leaf: Leaf, group: ColumnGroup, files: Integers) -> Mask:
        found = np.ones(len(files), bool)
        if group.name is None or group.problem or group.data_type is None:
            return found
        indexes, question = self._table.indexes, leaf.question(group)
        keys = listed_keys(question) if isinstance(question, Within) else None
        if _TYPE not in indexes.types(group.name):
            return found
        fresh = indexes.fresh(group.name, _TYPE)[files]
        if not keys:
            self._recorder.uses.add(leaf.text, _TYPE, "unsupported predicate", int(fresh.sum()))
            return found
        blocks = np.minimum(
            _BITS * len(keys), indexes.lengths(group.name, _TYPE)[files] // _BLOCK + 1
        )
        reads = np.minimum(blocks, blocks * _BLOCK // self._table.gap + 1)
        worth = blocks * _BLOCK + reads * self._table.gap < self._scan[files]
        self._recorder.uses.add(leaf.text, _TYPE, "not worth it", int((fresh & ~worth).sum()))
        asked = fresh & worth
        answer = indexes.probe(group.name, files[asked], keys, key_type(group.data_type))
        for error in answer.damage.values():
            self._recorder.damaged(leaf.text, _TYPE, error)
        self._recorder.uses.add(leaf.text, _TYPE, "answered", int(asked.sum()) - len(answer.damage))
        found[asked] = answer.may_match
        return found
