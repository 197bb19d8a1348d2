"""Containers: through the options of a table, as a data file's writer does, and from raw bytes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.golden.container_cases import RAW, TABLES, Table
from tests.golden.container_head import parse_head
from tests.golden.paimon_jvm import PaimonJvm
from tests.golden.values import Json, save

EMBED = {"file-index.in-manifest-threshold": "100mb"}  # the bytes are returned without a file


def write_containers(jvm: PaimonJvm, folder: Path) -> None:
    """All container files."""
    for table in TABLES:
        write_table(jvm, folder, table)
    for name, columns in RAW.items():
        write_raw(jvm, folder, name, columns)


def write_table(jvm: PaimonJvm, folder: Path, table: Table) -> None:
    """A container of a table's rows, and the answers to its questions."""
    row_type = java_row_type(jvm, table)
    options = table.options | EMBED
    data = _index_rows(jvm, table, row_type, options)
    asking = jvm.paimon.fileindex.FileIndexPredicate(data, row_type)
    facts: dict[str, Json] = {
        "kind": "container",
        "fields": [
            {"id": number, "name": name, "type": kind}
            for number, (name, kind) in enumerate(table.fields.items())
        ],
        "table_options": options,
        "head": parse_head(data),
        "row_count": len(table.rows),
        "rows": table.rows,
        "predicates": [
            {"predicate": question, "result": ask_container(jvm, table, asking, question)}
            for question in table.questions
        ],
        "topn": [top_n_of_container(jvm, table, asking, *question) for question in table.top_n],
    }
    save(folder, f"container_{table.name}", facts, data)


def java_row_type(jvm: PaimonJvm, table: Table) -> Any:
    fields = jvm.java.util.ArrayList()
    for number, (name, kind) in enumerate(table.fields.items()):
        fields.add(jvm.paimon.types.DataField(number, name, jvm.data_type(kind)))
    return jvm.paimon.types.RowType(fields)


def _index_rows(jvm: PaimonJvm, table: Table, row_type: Any, options: dict[str, str]) -> bytes:
    java_options = jvm.paimon.options.Options()
    for key, value in options.items():
        java_options.setString(key, value)
    writer = jvm.paimon.io.DataFileIndexWriter.create(
        jvm.paimon.fs.local.LocalFileIO(),
        jvm.paimon.fs.Path("unused"),
        row_type,
        jvm.paimon.CoreOptions(java_options).indexColumnsOptions(),
    )
    columns = [
        jvm.values(kind, [row[position] for row in table.rows])
        for position, kind in enumerate(table.fields.values())
    ]
    row_of = jvm.method("org.apache.paimon.data.GenericRow", "of", 1)
    for number in range(len(table.rows)):
        items = jvm.java.util.ArrayList()
        for column in columns:
            items.addAll(column.subList(number, number + 1))
        writer.write(row_of.invokeWithArguments(items))
    writer.close()
    return bytes(jvm.embedded_bytes(writer.result()))


def ask_container(jvm: PaimonJvm, table: Table, asking: Any, question: Json) -> Json:
    answer = jvm.answer(lambda: asking.evaluate(java_predicate(jvm, table.fields, question)))
    # Of several indexes of a column Paimon asks any first: a miss is SKIP or no rows, by chance.
    return "SKIP" if answer == {"ranges": []} else answer


def java_predicate(jvm: PaimonJvm, fields: Mapping[str, str], question: Json) -> Any:
    """Paimon's predicate for its JSON form; the fields are names and types of all columns."""
    for word in ("and", "or"):
        if word in question:
            parts = jvm.java.util.ArrayList()
            for part in question[word]:
                parts.add(java_predicate(jvm, fields, part))
            return getattr(jvm.paimon.predicate.PredicateBuilder, word)(parts)
    column, kind = question["column"], _type_of(fields, question["column"])
    name = "".join(part.title() for part in question["function"].split("_"))
    function = getattr(jvm.paimon.predicate, name).INSTANCE
    index = list(fields).index(column.split("[")[0])
    literals = jvm.values(kind, question["literals"])
    return jvm.paimon.predicate.LeafPredicate(
        function, jvm.data_type(kind), index, column, literals
    )


def _type_of(fields: Mapping[str, str], column: str) -> str:
    """The type of a column; for a map key that of the map's values."""
    if "[" in column:
        return fields[column.split("[", 1)[0]][4:-1].split(", ", 1)[1]
    return fields[column]


def top_n_of_container(
    jvm: PaimonJvm, table: Table, asking: Any, column: str, order: tuple[str, str], limit: int
) -> Json:
    rows = {"ranges": [[0, len(table.rows)]]}
    predicate = jvm.paimon.predicate
    index = list(table.fields).index(column)
    field = predicate.FieldRef(index, column, jvm.data_type(table.fields[column]))
    top = predicate.TopN(
        field,
        predicate.SortValue.SortDirection.valueOf(order[0]),
        predicate.SortValue.NullOrdering.valueOf(order[1]),
        limit,
    )
    return {
        "column": column,
        "direction": order[0].removesuffix("ENDING"),
        "nulls": order[1].replace("_", " "),
        "k": limit,
        "strict": True,
        "selection": rows,
        "result": jvm.answer(lambda: asking.evaluateTopN(top, jvm.bitmap_result(rows["ranges"]))),
    }


def write_raw(
    jvm: PaimonJvm, folder: Path, name: str, columns: dict[str, dict[str, bytes | None]]
) -> None:
    """A container of literal payloads; None is the empty index."""
    maps = jvm.java.util.LinkedHashMap()
    for column, indexes in columns.items():
        inner = jvm.java.util.LinkedHashMap()
        for index_type, payload in indexes.items():
            inner.put(index_type, payload if payload is None else bytearray(payload))
        maps.put(column, inner)
    out = jvm.java.io.ByteArrayOutputStream()
    writer = jvm.paimon.fileindex.FileIndexFormat.createWriter(out)
    writer.writeColumnIndexes(maps)
    writer.close()
    data = bytes(out.toByteArray())
    payloads = [
        {
            "column": column,
            "index_type": index_type,
            "hex": None if payload is None else payload.hex(),
        }
        for column, indexes in columns.items()
        for index_type, payload in indexes.items()
    ]
    facts = {"kind": "container_raw", "head": parse_head(data), "payloads": payloads}
    save(folder, f"container_raw_{name}", facts, data)
