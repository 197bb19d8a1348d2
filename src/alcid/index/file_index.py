"""`FileIndex`: the indexes of one data file, built from Arrow and evaluated with predicates."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from functools import partial
from operator import index as as_index
from operator import methodcaller
from typing import Literal

import pyarrow as pa
from pyroaring import BitMap

from alcid.errors import (
    AlcidWarning,
    ColumnError,
    DamagedIndexWarning,
    FormatError,
    PredicateError,
    UnsupportedError,
)
from alcid.expressions import (
    BoundAnd,
    BoundConstant,
    BoundLeaf,
    BoundOr,
    BoundUnknown,
    BoundVisitor,
    Predicate,
    bind,
    normalize,
    parse,
)
from alcid.expressions.columns import Columns, ColumnTypes
from alcid.expressions.probes import probe_index
from alcid.formats.deletion_vector import DeletionVector
from alcid.formats.file_index import BUILDERS, READERS, open_index
from alcid.formats.file_index.container import Container, Entry, write_container
from alcid.formats.file_index.keys import KeyColumn, key_type, map_key_column, read_column
from alcid.formats.file_index.reader import (
    ANY,
    EVERY,
    IndexReader,
    Selection,
    no_row,
)
from alcid.formats.source import (
    BytesSource,
    File,
    FileSource,
    Source,
    open_with,
)
from alcid.options import ColumnNames, OptionValue, parse_options
from alcid.types import DataType, require_index

_log = logging.getLogger("alcid")


class FileIndex:
    """The file indexes of one data file.

    An answer holds every row that matches, and unless it is `exact` maybe more: then apply the
    predicate again to the rows read. A damaged index answers "any row" and warns, or raises with
    `strict`; the container has no checksum, so damage is seen only where it breaks the structure.

    >>> import pyarrow as pa
    >>> table = pa.table({"class_id": [1, 2, 1], "score": [50.0, 90.0, 70.0]})
    >>> index = FileIndex.build(
    ...     table,
    ...     {"file-index.bitmap.columns": "class_id", "file-index.range-bitmap.columns": "score"},
    ... )
    >>> index.evaluate("class_id = 1 AND score < 60 OR score > 80").rows
    BitMap([0, 1])
    >>> index.evaluate("class_id = 7").skip
    True
    >>> index.top_n("score", 1).rows
    BitMap([1])
    """

    def __init__(self, container: Container, types: ColumnTypes, *, strict: bool = False) -> None:
        """Use an opened container; `from_bytes`, `open` and `build` are the usual ways to one."""
        self.container = container
        self.strict = strict
        self._opened: FileSource | None = None
        self._columns = Columns(types)
        self._indexed = ColumnNames(dict.fromkeys(entry.column for entry in container.entries))
        self._readers: dict[Entry, IndexReader] = {}

    @classmethod
    def build(
        cls, table: pa.Table | pa.RecordBatch, options: Mapping[str, OptionValue]
    ) -> FileIndex:
        """Index the rows of a table, which must be those of one data file in their order.

        Args:
            table: The rows; only the columns to index are looked at.
            options: Paimon's table options, as `file-index.bitmap.columns`: see `alcid.options`.

        Raises:
            OptionError: An option is unknown, misplaced or has a bad value.
            ColumnError: No such column, or a name that fits more than one.
            UnsupportedError: The index does not take the type of the column.
            LimitError: More rows or bytes than an index can hold.
        """
        if not isinstance(table, pa.Table | pa.RecordBatch):
            raise UnsupportedError(f"build: found {type(table).__name__}, expected a pyarrow Table")
        columns = Columns(table.schema)
        payloads: dict[tuple[str, str], bytes | None] = {}
        read: dict[str, KeyColumn] = {}
        for spec in parse_options(options):
            index, data_type = spec.resolve(columns, columns.names)
            array = table.column(index.top_level)
            if index.map_key is not None:
                array = map_key_column(array, index.map_key)
            if index.map_key is not None and not len(array):
                payloads[index.column, index.index_type] = None
                continue
            try:
                if index.column not in read:
                    read[index.column] = read_column(array, data_type)
                keys = read[index.column]
                payload = BUILDERS[index.index_type](keys, **asdict(index.options))
            except UnsupportedError as error:  # of a value: the type was checked
                left_out = f"{index.index_type} of {index.column!r} left out: {error}"
                warnings.warn(left_out, AlcidWarning, stacklevel=2)
                continue
            payloads[index.column, index.index_type] = payload
            _log.debug("%s of %r: %d bytes", index.index_type, index.column, len(payload))
        source = BytesSource(write_container(payloads), "<built>")
        return cls(Container.open(source), table.schema)

    @classmethod
    def from_bytes(
        cls,
        data: bytes | bytearray | memoryview,
        types: ColumnTypes,
        *,
        strict: bool = False,
        name: str = "<bytes>",
    ) -> FileIndex:
        """Open a container in memory.

        Args:
            data: The container: a whole `.index` file, or what a manifest embeds.
            types: Column types, as Paimon's text (`{"score": "DOUBLE"}`) or an Arrow schema; they
                must be those of the data file, because the container does not hold them. With a
                schema, a predicate on a column that it does not have is an error.
            strict: Raise where an index is damaged, in place of a warning.
            name: What errors call the bytes.
        """
        return cls.open(BytesSource(data, name), types, strict=strict)

    @classmethod
    def open(
        cls,
        source: File,
        types: ColumnTypes,
        *,
        strict: bool = False,
    ) -> FileIndex:
        """Open a container by reading its head; indexes are read when they are asked.

        Args:
            source: A local path, a binary file object that can seek, or anything that can be read
                by range. A path stays open until `close`, or the end of a `with` block; what is
                not a path belongs to the caller.
            types: As for `from_bytes`.
            strict: As for `from_bytes`.
        """

        def make(readable: Source) -> FileIndex:
            return cls(Container.open(readable), types, strict=strict)

        index, opened = open_with(source, make)
        index._opened = opened
        return index

    def close(self) -> None:
        """Close the file that `open` opened; without one, nothing happens."""
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()

    def __enter__(self) -> FileIndex:
        """Return itself."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the file."""
        self.close()

    def __repr__(self) -> str:
        """The name, and what is indexed how."""
        indexes = ", ".join(f"{entry.column} {entry.index_type}" for entry in self.entries)
        return f"<FileIndex {self.container.source.name}: {indexes or 'no index'}>"

    def to_bytes(self) -> bytes:
        """The container: what Paimon keeps as a `.index` file or embeds in its manifest."""
        source = self.container.source
        return source.read(0, source.size)

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Column, type and place of every index, in the order of the file."""
        return self.container.entries

    def type_of(self, column: str) -> DataType:
        """The type of a column.

        Raises:
            ColumnError: It is not known.
        """
        return self._columns.type_of(column)

    def evaluate(self, predicate: str | Predicate) -> Selection:
        """The rows that may match a predicate.

        Args:
            predicate: SQL text, or a predicate made with `alcid.col`.

        Returns:
            `skip` is true when no row can match; `rows` are positions, or None for any row;
            `exact` is true when each of these rows matches.

        Raises:
            PredicateError: The text is not a predicate.
            LiteralError: A literal has no meaning for the type of its column.
            ColumnError: A name fits more than one indexed column, or the type of one is not known.
        """
        problems: list[str] = []
        try:
            bound = bind(normalize(parse(predicate)), self._type_of)
            answer = bound.accept(_Evaluation(lambda leaf: self._probe(leaf, problems)), None)
        except RecursionError:
            raise PredicateError("a predicate that is nested too deeply") from None
        _warn(problems)
        return answer

    def top_n(
        self,
        column: str,
        k: int,
        descending: bool = True,
        nulls: Literal["first", "last"] = "last",
        among: Selection | Iterable[int] | None = None,
        *,
        ties: bool = True,
    ) -> Selection:
        """The rows of `ORDER BY column DESC NULLS LAST LIMIT k`, from a range-bitmap index.

        Args:
            column: The column to order by.
            k: How many rows.
            descending: The highest values first, else the lowest. NaN is above every number.
            nulls: Whether nulls come before or behind all values.
            among: Choose only from these positions; or from what `evaluate` gave, if it is exact:
                else it comes back as it is, because its rows have to be looked at first.
            ties: Keep every row that equals the last one, so that more sort keys can decide;
                without, `k` rows, except where keys drop a part of the value. The two float
                zeros are equal.

        Returns:
            The rows, `exact` if they are those and their ties; without an index that can answer,
            the rows of `among`, or any row, not exact. A range-bitmap can answer, except on CHAR,
            which Spark compares padded.
        """
        if as_index(k) < 0 or nulls not in ("first", "last"):
            raise PredicateError(
                f"top_n: found k={k!r}, nulls={nulls!r}, expected a k >= 0, first or last"
            )
        if isinstance(among, DeletionVector):
            raise UnsupportedError("among: found the deleted rows, expected the others: live_rows")
        chosen = among if isinstance(among, Selection) else _selection(among)
        if not chosen.exact:  # rows that do not match could push out those that do
            return chosen
        problems: list[str] = []
        for entry, data_type in self._indexes(column):
            # Spark orders CHAR padded, its keys are not.
            if entry.index_type != "range-bitmap" or data_type.root == "CHAR":
                continue
            # Keys that drop a part of the value cannot tell which of equal ones come first.
            keep_ties = ties or key_type(data_type).truncated
            order = {"descending": descending, "nulls": nulls}
            top = methodcaller("top_n", k, **order, among=chosen.rows, ties=keep_ties)
            answer = self._ask(entry, top, problems)
            if answer.rows is not None:
                return Selection(answer.rows, exact=not key_type(data_type).truncated)
        _warn(problems)
        return Selection(chosen.rows)

    def _probe(self, leaf: BoundLeaf, problems: list[str]) -> Selection:
        for entry, data_type in self._indexes(leaf.column):
            probe = leaf.probe(data_type)
            answer = self._ask(entry, partial(probe_index, probe=probe), problems)
            count = "any" if answer.rows is None else len(answer.rows)
            _log.debug("%s of %r: %s: rows %s", entry.index_type, leaf.column, leaf, count)
            if answer.rows is not None:  # rows are exact, so that no other index could tell more
                return answer
        return ANY

    def _type_of(self, column: str) -> DataType | None:
        """The type of a column that a predicate names, if it is known."""
        try:
            return self._columns.type_of(column)
        except (ColumnError, UnsupportedError):
            return None

    def _indexes(self, column: str) -> Iterator[tuple[Entry, DataType]]:
        """The indexes of a column, those that read the least first."""
        name = self._indexed.match(column)
        if name is None:
            self._columns.require(column)
            return
        data_type = self._columns.type_of(name)
        by_type = {entry.index_type: entry for entry in self.entries if entry.column == name}
        readable = [index_type for index_type in READERS if index_type in by_type]
        for index_type in readable + [other for other in by_type if other not in READERS]:
            yield by_type[index_type], data_type

    def reader(self, entry: Entry) -> IndexReader:
        """The opened index of an entry, to ask it in keys.

        Raises:
            FormatError: The index is damaged.
            UnsupportedError: Its type is not known, or does not go with that of the column.
            ColumnError: The type of the column was not given.
        """
        if entry not in self._readers:
            data_type = self._columns.type_of(entry.column)
            require_index(entry.index_type, entry.column, data_type)
            self._readers[entry] = open_index(self.container, entry, key_type(data_type))
        return self._readers[entry]

    def _ask(
        self, entry: Entry, ask: Callable[[IndexReader], Selection], problems: list[str]
    ) -> Selection:
        """The answer of an index; where it is damaged any row, and a problem more."""
        try:
            return ask(self.reader(entry))
        except (FormatError, UnsupportedError) as error:
            if self.strict:
                raise
            data_type = self._columns.type_of(entry.column)
            problems.append(
                f"{entry.index_type} of {entry.column!r}, {data_type}, not used: {error}"
            )
            return ANY


class _Evaluation(BoundVisitor[None, Selection]):
    """Joins the rows of leaves."""

    def __init__(self, probe: Callable[[BoundLeaf], Selection]) -> None:
        self._probe = probe

    def visit_and(self, node: BoundAnd, _context: None) -> Selection:
        selection = EVERY
        for part in node.parts:
            selection &= part.accept(self, None)
            if selection.skip:
                break
        return selection

    def visit_or(self, node: BoundOr, _context: None) -> Selection:
        selection = no_row()
        for part in node.parts:
            selection |= part.accept(self, None)
            if selection.rows is None:
                break
        return selection

    def visit_constant(self, node: BoundConstant, _context: None) -> Selection:
        return EVERY if node.value else no_row()

    def visit_unknown(self, _node: BoundUnknown, _context: None) -> Selection:
        return ANY

    def visit_leaf(self, node: BoundLeaf, _context: None) -> Selection:
        return self._probe(node)


def _warn(problems: Iterable[str]) -> None:
    """Give each problem once, at the line that asked."""
    for problem in dict.fromkeys(problems):
        warnings.warn(problem, DamagedIndexWarning, stacklevel=3)


def _selection(rows: Iterable[int] | None) -> Selection:
    return EVERY if rows is None else Selection(BitMap(rows), exact=True)
