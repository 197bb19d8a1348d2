"""A JVM with a released Paimon jar, asked over py4j: write an index, read it, answer.

Two things make py4j awkward here. It unboxes every `Byte`, `Short`, `Long` and `Float` it returns,
so a boxed value must be made and used without leaving the JVM; and a call costs about 0.1 ms, as
does every name on the way to a class, so a column of 150,000 rows must cross as one text. Method
handles, bound and shown to Java as a `Function` or `Consumer`, solve both.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tests.golden.jvm import Package, fetch_jar, java_gateway
from tests.golden.values import Json, ranges_of

VERSION = "1.4.2"
BUNDLE = f"org.apache.paimon:paimon-bundle:{VERSION}"
LOGGING = "org.slf4j:slf4j-api:2.0.17"  # all that the bundle needs for file indexes; no Hadoop

# How a boxed value is made from its text: class, static method, class of its parameter.
TEXT_PARSERS = {
    "BOOLEAN": ("java.lang.Boolean", "valueOf"),
    "TINYINT": ("java.lang.Byte", "valueOf"),
    "SMALLINT": ("java.lang.Short", "valueOf"),
    "INT": ("java.lang.Integer", "valueOf"),
    "DATE": ("java.lang.Integer", "valueOf"),
    "TIME": ("java.lang.Integer", "valueOf"),
    "BIGINT": ("java.lang.Long", "valueOf"),
    "FLOAT": ("java.lang.Integer", "parseInt"),
    "DOUBLE": ("java.lang.Long", "parseLong"),
}


@contextmanager
def paimon_jvm() -> Iterator[PaimonJvm]:
    """Start a JVM that has Paimon on its class path; it ends with the block."""
    with java_gateway(fetch_jar(BUNDLE), fetch_jar(LOGGING)) as gateway:
        yield PaimonJvm(gateway)


class PaimonJvm:
    """Paimon's classes, and values of its types, behind one gateway."""

    def __init__(self, gateway: Any) -> None:
        self.gateway = gateway
        self.java = Package(gateway.jvm.java)
        self.paimon = Package(gateway.jvm.org.apache.paimon)
        self.remain = self.paimon.fileindex.FileIndexResult.REMAIN
        self.skip = self.paimon.fileindex.FileIndexResult.SKIP
        self._parsers: dict[str, Any] = {}
        self._methods: dict[tuple[str, str, int], Any] = {}
        self._interfaces: dict[str, Any] = {}
        self._write = self.method("org.apache.paimon.fileindex.FileIndexWriter", "writeRecord", 1)

    # -- Java's own things ---------------------------------------------------------------------

    def method(self, owner: str, name: str, parameters: int) -> Any:
        """The handle of the method with that many parameters; not the bridge to it."""
        if (owner, name, parameters) not in self._methods:
            self._methods[owner, name, parameters] = self._find_method(owner, name, parameters)
        return self._methods[owner, name, parameters]

    def _find_method(self, owner: str, name: str, parameters: int) -> Any:
        for method in self.java.lang.Class.forName(owner).getMethods():
            if (
                method.getName() == name
                and method.getParameterCount() == parameters
                and not method.isBridge()
            ):
                return self.java.lang.invoke.MethodHandles.publicLookup().unreflect(method)
        raise LookupError(f"{owner} has no {name} with {parameters} parameters")

    def text_method(self, owner: str, name: str) -> Any:
        """The handle of a static method that takes one String."""
        parameters = self.gateway.new_array(self.java.lang.Class, 1)
        parameters[0] = self.java.lang.Class.forName("java.lang.String")
        method = self.java.lang.Class.forName(owner).getMethod(name, parameters)
        return self.java.lang.invoke.MethodHandles.publicLookup().unreflect(method)

    def interface(self, name: str, handle: Any) -> Any:
        """The handle as an object of a functional interface of `java.util.function`."""
        if name not in self._interfaces:
            kind = self.java.lang.Class.forName(f"java.util.function.{name}")
            self._interfaces[name] = kind
        proxies = self.java.lang.invoke.MethodHandleProxies
        return proxies.asInterfaceInstance(self._interfaces[name], handle)

    # -- values --------------------------------------------------------------------------------

    def data_type(self, sql: str) -> Any:
        """Paimon's type for an SQL text; nested types as far as the golden files need them."""
        types = self.paimon.types.DataTypes
        if sql.startswith("ARRAY<"):
            return types.ARRAY(self.data_type(sql[6:-1]))
        if sql.startswith("MAP<"):
            key, value = sql[4:-1].split(", ", 1)
            return types.MAP(self.data_type(key), self.data_type(value))
        if sql.startswith("ROW<"):
            fields = self.java.util.ArrayList()
            name, kind = sql[4:-1].split(" ", 1)
            fields.add(self.paimon.types.DataField(0, name, self.data_type(kind)))
            return self.paimon.types.RowType(fields)
        if sql == "VARIANT":
            return types.VARIANT()
        return self.paimon.types.DataTypeJsonParser.parseAtomicTypeSQLString(sql)

    def values(self, sql: str, values: Sequence[Json]) -> Any:
        """A `java.util.ArrayList` of Paimon's internal values, made from their JSON form."""
        dictionary = self.java.util.HashMap()
        keys: dict[str, str] = {}
        texts = []
        for value in values:
            if value is None:
                texts.append("null")  # never a key, so that HashMap.get gives null
                continue
            identity = value if isinstance(value, str) else json.dumps(value)
            if identity not in keys:
                keys[identity] = self._remember(dictionary, sql, value, len(keys))
            texts.append(keys[identity])
        tokens = self.java.util.StringTokenizer(",".join(texts), ",")
        result = self.java.util.Collections.list(tokens)
        get = self.method("java.util.HashMap", "get", 1).bindTo(dictionary)
        result.replaceAll(self.interface("UnaryOperator", get))
        return result

    def _remember(self, dictionary: Any, sql: str, value: Json, code: int) -> str:
        """Put a value into the dictionary, under a text that holds no comma."""
        root = re.split(r"[( ]", sql, maxsplit=1)[0]
        if root in TEXT_PARSERS:
            text = _text(value)
            dictionary.computeIfAbsent(text, self._parser(root))
            return text
        dictionary.put(str(code), self._object(sql, root, value))
        return str(code)

    def _parser(self, root: str) -> Any:
        if root not in self._parsers:
            handle = self.text_method(*TEXT_PARSERS[root])
            if root in ("FLOAT", "DOUBLE"):
                owner, name = (
                    ("java.lang.Float", "intBitsToFloat")
                    if root == "FLOAT"
                    else ("java.lang.Double", "longBitsToDouble")
                )
                handle = self.java.lang.invoke.MethodHandles.filterReturnValue(
                    handle, self.method(owner, name, 1)
                )
            self._parsers[root] = self.interface("Function", handle)
        return self._parsers[root]

    def _object(self, sql: str, root: str, value: Json) -> Any:
        data = self.paimon.data
        if root == "DECIMAL":
            from decimal import Decimal

            precision, scale = (int(part) for part in sql[8:-1].split(","))
            return data.Decimal.fromBigDecimal(Decimal(str(value)), precision, scale)
        if root in ("CHAR", "VARCHAR", "STRING"):
            return data.BinaryString.fromBytes(str(value).encode())
        assert isinstance(value, dict)
        if root in ("BINARY", "VARBINARY", "BYTES"):
            return bytearray.fromhex(str(value["hex"]))
        if root.startswith("MAP<"):
            key_type, value_type = sql[4:-1].split(", ", 1)
            entries = self.java.util.LinkedHashMap()
            for key, item in value["map"]:
                entries.put(
                    self._object(key_type, key_type, key),
                    None if item is None else self._object(value_type, value_type, item),
                )
            return data.GenericMap(entries)
        return data.Timestamp.fromEpochMillis(value["millis"], value["nano_of_millis"])

    def bitmap_result(self, ranges: Sequence[Sequence[int]]) -> Any:
        """Positions as the result that a filter would have handed to the top-n."""
        bitmap = self.bitmap(ranges)
        handle = self.java.lang.invoke.MethodHandles.constant(bitmap.getClass(), bitmap)
        supplier = self.interface("Supplier", handle)
        return self.paimon.fileindex.bitmap.BitmapIndexResult(supplier)

    def bitmap(self, ranges: Sequence[Sequence[int]]) -> Any:
        """A bitmap built by ascending `add`, as every index writer builds its own."""
        bitmap = self.paimon.utils.RoaringBitmap32()
        positions = [position for start, end in ranges for position in range(start, end)]
        if positions:
            add = self.method("org.apache.paimon.utils.RoaringBitmap32", "add", 1).bindTo(bitmap)
            self.values("INT", positions).forEach(self.interface("Consumer", add))
        return bitmap

    # -- indexes -------------------------------------------------------------------------------

    def indexer(self, index_type: str, sql: str, options: dict[str, str]) -> Any:
        """Paimon's factory of writers and readers of one column."""
        java_options = self.paimon.options.Options()
        for key, value in options.items():
            java_options.setString(key, value)
        return self.paimon.fileindex.FileIndexer.create(
            index_type, self.data_type(sql), java_options
        )

    def write(
        self, index_type: str, sql: str, options: dict[str, str], values: Sequence[Json]
    ) -> bytes:
        """The payload that Paimon writes for a column."""
        writer = self.indexer(index_type, sql, options).createWriter()
        consumer = self.interface("Consumer", self._write.bindTo(writer))
        self.values(sql, values).forEach(consumer)
        return bytes(writer.serializedBytes())

    def embedded_bytes(self, result: Any) -> Any:
        """The bytes of a `DataFileIndexWriter`'s result, whose class is not public."""
        owner = "org.apache.paimon.io.DataFileIndexWriter$FileIndexResult"
        call = self.method(owner, "embeddedIndexBytes", 0).bindTo(result)
        return call.invokeWithArguments(self.java.util.ArrayList())

    def answer(self, ask: Callable[[], Any]) -> Json:
        """The answer of a reader: REMAIN, SKIP, the positions, or the class that it threw."""
        from py4j.protocol import Py4JJavaError

        try:
            result = ask()
            if result is None:
                return "null"
            if result.equals(self.remain):
                return "REMAIN"
            if result.equals(self.skip):
                return "SKIP"
            return {"ranges": ranges_of(bytes(result.get().serialize()))}
        except Py4JJavaError as failure:
            return {"error": self.failure(failure)[0]}

    def failure(self, error: Any) -> tuple[str, str]:
        """Simple class name and message of what Java threw."""
        thrown = error.java_exception
        return str(thrown.getClass().getSimpleName()), str(thrown.getMessage())


def _text(value: Json) -> str:
    """The text that the parser of TEXT_PARSERS reads: float bits as a signed number."""
    if isinstance(value, dict) and "f32" in value:
        return str(struct.unpack(">i", bytes.fromhex(str(value["f32"])))[0])
    if isinstance(value, dict):
        return str(struct.unpack(">q", bytes.fromhex(str(value["f64"])))[0])
    return json.dumps(value)
