"""Bloom filters: which files may have a value at all, for all files in one round of reads."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from alcid.formats.file_index.keys import key_type
from alcid.plan.columns import ColumnGroup
from alcid.plan.cost import listed_keys
from alcid.plan.leaves import Leaf
from alcid.plan.probing import Probing
from alcid.plan.recorder import Recorder
from alcid.plan.table_files import Integers, TableFiles
from alcid.plan.verdict import Mask
from alcid.predicate import Within

__all__ = ["Blooms"]

_BITS = 8  # that are looked at for a key, about
_BLOCK = 1 << 10


class Blooms(Probing):
    """Asks the bloom filters of files, as far as that is cheaper than to read the files."""

    index_type = "bloom-filter"

    def __init__(
        self,
        table: TableFiles,
        leaves: Mapping[int, Leaf],
        scan: Integers,
        recorder: Recorder,
    ) -> None:
        """Prepare; `scan` is what is read of each file of the table without indexes."""
        super().__init__(table, leaves, recorder)
        self._scan = scan

    def _probe(self, leaf: Leaf, group: ColumnGroup, files: Integers) -> Mask:
        assert group.name is not None
        assert group.data_type is not None
        found = np.ones(len(files), bool)
        indexes, question = self._table.indexes, leaf.question(group)
        keys = listed_keys(question) if isinstance(question, Within) else None
        fresh = indexes.fresh(group.name, self.index_type)[files]
        add = self._recorder.uses.add
        if not keys:
            add(leaf.text, self.index_type, "unsupported predicate", int(fresh.sum()))
            return found
        lengths = indexes.lengths(group.name, self.index_type)[files]
        blocks = np.minimum(_BITS * len(keys), lengths // _BLOCK + 1)
        reads = np.minimum(blocks, blocks * _BLOCK // self._table.gap + 1)
        worth = blocks * _BLOCK + reads * self._table.gap < self._scan[files]
        add(leaf.text, self.index_type, "not worth it", int((fresh & ~worth).sum()))
        asked = fresh & worth
        answer = indexes.probe(group.name, files[asked], keys, key_type(group.data_type))
        for error in answer.damage.values():
            self._recorder.damaged(leaf.text, self.index_type, error)
        add(leaf.text, self.index_type, "answered", int(asked.sum()) - len(answer.damage))
        found[asked] = answer.may_match
        return found
