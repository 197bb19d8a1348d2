"""Paimon's reader of one payload, asked predicates and top-n."""

from __future__ import annotations

from typing import Any

from tests.golden.paimon_jvm import PaimonJvm
from tests.golden.payload_columns import Column
from tests.golden.values import Json

READER = "org.apache.paimon.fileindex.FileIndexReader"
COMPARISONS = {
    "eq": "visitEqual",
    "neq": "visitNotEqual",
    "lt": "visitLessThan",
    "lte": "visitLessOrEqual",
    "gt": "visitGreaterThan",
    "gte": "visitGreaterOrEqual",
}


class PayloadReader:
    """Paimon's reader of one payload."""

    def __init__(self, jvm: PaimonJvm, column: Column, payload: bytes) -> None:
        self.jvm = jvm
        self.data_type = column.data_type
        self.field = jvm.paimon.predicate.FieldRef(0, "c", jvm.data_type(column.data_type))
        stream = jvm.paimon.fs.ByteArraySeekableStream(payload)
        indexer = jvm.indexer(column.index_type, column.data_type, column.options)
        self.reader = indexer.createReader(stream, 0, len(payload))

    def ask(self, operator: str, literals: list[Json]) -> Json:
        """The answer of the reader to a predicate."""
        return self.jvm.answer(lambda: self._visit(operator, literals))

    def _visit(self, operator: str, literals: list[Json]) -> Any:
        words = operator.split("_")
        name = COMPARISONS.get(operator, "visit" + "".join(word.title() for word in words))
        arguments = self.jvm.java.util.ArrayList()
        arguments.add(self.reader)
        arguments.add(self.field)
        listed = self.jvm.values(self.data_type, literals)
        if operator in ("in", "not_in"):
            arguments.add(listed)
        else:
            arguments.addAll(listed)
        return self.jvm.method(READER, name, arguments.size() - 1).invokeWithArguments(arguments)

    def top_n(self, limit: int, order: tuple[str, str], strict: bool, allowed: Json) -> Json:
        """The answer to a top-n; strict means one sort column, else a second one breaks ties."""
        predicate = self.jvm.paimon.predicate
        orders = self.jvm.java.util.ArrayList()
        for _ in range(1 if strict else 2):
            direction = predicate.SortValue.SortDirection.valueOf(order[0])
            nulls = predicate.SortValue.NullOrdering.valueOf(order[1])
            orders.add(predicate.SortValue(self.field, direction, nulls))
        arguments = self.jvm.java.util.ArrayList()
        arguments.add(self.reader)
        arguments.add(predicate.TopN(orders, limit))
        arguments.add(allowed and self.jvm.bitmap_result(allowed["ranges"]))
        visit = self.jvm.method(READER, "visitTopN", 2)
        return self.jvm.answer(lambda: visit.invokeWithArguments(arguments))
