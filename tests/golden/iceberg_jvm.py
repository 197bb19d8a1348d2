"""A JVM with Iceberg's released Spark runtime: alone over py4j, or as the driver of a PySpark.

Both have PySpark's own jars next to Iceberg's. Some classes of Iceberg are not public: reflection
reaches them, as no module closes them off.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.golden.jvm import Package, fetch_jar, java_gateway, spark_jars
from tests.golden.positions import give_positions

VERSION = "1.12.0"
RUNTIME = f"org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:{VERSION}"
CATALOG = "golden"
INDEX = "org.apache.iceberg.deletes.BitmapPositionDeleteIndex"


@contextmanager
def iceberg_jvm() -> Iterator[IcebergJvm]:
    """Start a JVM without Spark: enough for Puffin files and deletion vectors."""
    with java_gateway(fetch_jar(RUNTIME), spark_jars()) as gateway:
        yield IcebergJvm(gateway)


@contextmanager
def iceberg_spark(warehouse: Path, cores: int = 2) -> Iterator[Any]:
    """A local Spark session whose catalog `golden` keeps Iceberg tables in a folder."""
    from pyspark.sql import SparkSession

    settings = {
        "spark.driver.extraClassPath": str(fetch_jar(RUNTIME)),
        "spark.driver.memory": "1g",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.extensions": (
            "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"
        ),
        f"spark.sql.catalog.{CATALOG}": "org.apache.iceberg.spark.SparkCatalog",
        f"spark.sql.catalog.{CATALOG}.type": "hadoop",
        f"spark.sql.catalog.{CATALOG}.warehouse": str(warehouse),
        f"spark.sql.catalog.{CATALOG}.cache-enabled": "false",
    }
    builder = SparkSession.Builder().master(f"local[{cores}]")
    for key, value in settings.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()


class IcebergJvm:
    """Iceberg's classes behind a gateway: its own, or `session.sparkContext._gateway`."""

    def __init__(self, gateway: Any) -> None:
        self.gateway = gateway
        self.java = Package(gateway.jvm.java)
        self.iceberg = Package(gateway.jvm.org.apache.iceberg)

    # -- reflection ----------------------------------------------------------------------------

    def method(self, owner: str, name: str, parameters: int) -> Any:
        """The handle of a method, public or not, with that many parameters."""
        for method in self.java.lang.Class.forName(owner).getDeclaredMethods():
            if method.getName() == name and method.getParameterCount() == parameters:
                method.setAccessible(True)
                return self.java.lang.invoke.MethodHandles.lookup().unreflect(method)
        raise LookupError(f"{owner} has no {name} with {parameters} parameters")

    def new(self, owner: str) -> Any:
        """An object of a class that is not public, by its constructor without parameters."""
        none = self.gateway.new_array(self.java.lang.Class, 0)
        constructor = self.java.lang.Class.forName(owner).getDeclaredConstructor(none)
        constructor.setAccessible(True)
        return constructor.newInstance(self.gateway.new_array(self.java.lang.Object, 0))

    def interface(self, name: str, handle: Any) -> Any:
        """The handle as an object of a functional interface of `java.util.function`."""
        kind = self.java.lang.Class.forName(f"java.util.function.{name}")
        return self.java.lang.invoke.MethodHandleProxies.asInterfaceInstance(kind, handle)

    def ordered(self, items: dict[str, str]) -> Any:
        """A Java map that keeps the order."""
        result = self.java.util.LinkedHashMap()
        for key, value in items.items():
            result.put(key, value)
        return result

    # -- deletion vectors ----------------------------------------------------------------------

    def position_index(self, positions: Sequence[int]) -> Any:
        """Iceberg's index of deleted positions, given one position after the other."""
        index = self.new(INDEX)
        give_positions(self.gateway, self.method(INDEX, "delete", 1).bindTo(index), positions)
        return index

    def serialize(self, index: Any) -> bytes:
        """The blob of an index."""
        call = self.method(INDEX, "serialize", 0).bindTo(index)
        buffer = call.invokeWithArguments(self.java.util.ArrayList())
        return bytes(buffer.array())[: buffer.remaining()]
