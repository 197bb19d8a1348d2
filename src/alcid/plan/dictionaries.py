"""Bitmap indexes that are searched together for a value: most files of a large table lack it."""

from __future__ import annotations

import numpy as np

from alcid.formats.file_index.keys import key_type
from alcid.plan.columns import ColumnGroup
from alcid.plan.cost import listed_keys
from alcid.plan.leaves import Leaf
from alcid.plan.probing import Probing
from alcid.plan.table_files import Integers
from alcid.plan.verdict import Mask
from alcid.predicate import Within

__all__ = ["Dictionaries"]

_MANY = 64  # fewer indexes are asked as fast one by one
_FEW_KEYS = 16  # each is searched for


class Dictionaries(Probing):
    """Searches the bitmap indexes of files whose indexes are worth asking."""

    index_type = "bitmap"

    def _probe(self, leaf: Leaf, group: ColumnGroup, files: Integers) -> Mask:
        assert group.name is not None
        assert group.data_type is not None
        found = np.ones(len(files), bool)
        indexes, question = self._table.indexes, leaf.question(group)
        keys = listed_keys(question) if isinstance(question, Within) else None
        asked = indexes.fresh(group.name, self.index_type)[files]
        if not keys or len(keys) > _FEW_KEYS or int(asked.sum()) < _MANY:
            return found
        lacks = indexes.lacking(group.name, files[asked], keys, key_type(group.data_type))
        self._recorder.uses.add(leaf.text, self.index_type, "answered", int(lacks.sum()))
        found[asked] = ~lacks
        return found
