"""The end of the JVM that PySpark started."""

from __future__ import annotations


def close_gateway() -> None:
    """End the JVM of a stopped session; PySpark leaves it to the end of the process.

    Otherwise the garbage collector would close its pipe and sockets, with a warning each.
    """
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if gateway is None:
        return
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait()
    SparkContext._gateway = SparkContext._jvm = None
