"""Open the table that a command works on, and start Spark where it is needed.

Starting Spark takes seconds. So what can be refused before, as an Iceberg table without Iceberg on
the class path, is refused first; and what the JVM prints while it starts is shown only if it fails.
"""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from alcid.cli.options import pairs
from alcid.errors import OptionError, UnsupportedError

if TYPE_CHECKING:
    from alcid.tables.iceberg_table import IcebergTable
    from alcid.tables.paimon_table import PaimonTable
    from alcid.tables.parquet_table import ParquetTable

    AnyTable: TypeAlias = ParquetTable | PaimonTable | IcebergTable


_MASTER = "spark.master"
_NO_ICEBERG = "the session has no Iceberg"


@dataclass(frozen=True, slots=True)
class Opening:
    """Options of every command that opens a table; see `alcid.cli.app.command`."""

    spark: Annotated[
        bool,
        typer.Option(
            "--spark",
            help="Use Spark, for many files. Iceberg tables and appends to Parquet folders always"
            " need it and start it themselves.",
        ),
    ] = False
    conf: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="A Spark setting, such as one of its catalogs; may be repeated. Starts Spark.",
            show_default=False,
        ),
    ] = None
    storage_option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="An object store setting, such as an access key or endpoint; may be repeated.",
            show_default=False,
        ),
    ] = None
    index_path: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER",
            help="The folder with the indexes of a Parquet folder, if not beside the data.",
            show_default=False,
        ),
    ] = None
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Fail on a damaged index instead of printing a warning."),
    ] = False

    @property
    def needs_spark(self) -> bool:
        """Whether the options request Spark."""
        return self.spark or bool(self.conf)


@dataclass(frozen=True, slots=True)
class ReadOpening(Opening):
    """Options of commands that only read: also an older snapshot, or rows not yet compacted."""

    snapshot: Annotated[
        int | None,
        typer.Option(
            metavar="ID",
            help="Read this snapshot of the table (Paimon, Iceberg).",
            show_default=False,
        ),
    ] = None
    ref: Annotated[
        str | None,
        typer.Option(
            "--tag",
            "--ref",
            metavar="NAME",
            help="Read this tag or branch of the table (Paimon, Iceberg).",
            show_default=False,
        ),
    ] = None
    merge_on_read: Annotated[
        bool,
        typer.Option(
            "--merge-on-read", help="Include rows of a Paimon table that are not compacted yet."
        ),
    ] = False


def open_table(
    name: str, how: Opening, *, needs_spark: bool = False, may_be_empty: bool = False
) -> AnyTable:
    """Open the table; Spark is started if the table, the options or the command need it.

    A folder without Parquet files is a warning, unless it may be empty.

    >>> import tempfile
    >>> import pyarrow as pa, pyarrow.parquet as pq
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pq.write_table(pa.table({"id": [1, 2]}), f"{folder}/a.parquet")
    ...     open_table(folder, Opening())
    <ParquetTable ...>
    """
    import alcid
    from alcid.opening import is_name

    is_iceberg = is_name(name)
    if is_iceberg and not could_have_iceberg(pairs("--conf", how.conf), os.environ):
        raise no_iceberg(name)
    spark = start_spark(how) if needs_spark or how.needs_spark or is_iceberg else None
    read = how if isinstance(how, ReadOpening) else ReadOpening()
    try:
        opened = alcid.table(
            name,
            spark,
            storage_options=pairs("--storage-option", how.storage_option) or None,
            index_path=how.index_path,
            snapshot_id=read.snapshot,
            ref=read.ref,
            merge_on_read=read.merge_on_read,
            strict=how.strict,
        )
    except UnsupportedError as error:
        if is_iceberg and str(error).startswith(_NO_ICEBERG):  # a folder may have been meant
            raise no_iceberg(name) from None
        raise
    if isinstance(opened, alcid.ParquetTable) and not (opened.files or may_be_empty):
        warnings.warn(f"{name}: no Parquet files in it", alcid.AlcidWarning, stacklevel=2)
    return opened


def start_spark(how: Opening) -> Any:
    """The running session, or a new one, with the settings of `--conf`."""
    import alcid
    from alcid.spark import jvm
    from alcid.spark.errors import spark_errors
    from alcid.spark.session import running_session

    settings = pairs("--conf", how.conf)
    for key in settings:
        if not key.startswith("spark."):
            raise OptionError(f"--conf: found {key}, expected a setting that starts with spark.")
    master = {"master": settings.pop(_MASTER)} if _MASTER in settings else {}
    running = running_session()
    with stderr_buffered() if running is None else nullcontext(), spark_errors():
        spark = alcid.session(config=settings, **master)
    if running is None:
        jvm.silence(spark)
    return spark


# Each may add jars to the class path.
_VARIABLES = (
    "PYSPARK_SUBMIT_ARGS",
    "SPARK_CLASSPATH",
    "SPARK_CONF_DIR",
    "SPARK_DIST_CLASSPATH",
    "SPARK_HOME",
    "SPARK_REMOTE",
)


def could_have_iceberg(settings: Iterable[str], environment: Mapping[str, str]) -> bool:
    """Whether Iceberg may be on the class path of a session that has not started yet.

    >>> could_have_iceberg(["spark.jars.packages"], {}), could_have_iceberg([], {"SPARK_HOME": "/"})
    (True, True)
    """
    if any(key.startswith("spark.jars") or "classpath" in key.lower() for key in settings):
        return True
    if any(environment.get(name) for name in _VARIABLES) or _is_running():
        return True
    pyspark = find_spec("pyspark")
    if pyspark is None or pyspark.origin is None:
        return True  # starting Spark will report that it is missing
    folder = Path(pyspark.origin).parent
    has_defaults = (folder / "conf" / "spark-defaults.conf").is_file()
    return has_defaults or any((folder / "jars").glob("*iceberg*.jar"))


def _is_running() -> bool:
    if "pyspark.sql" not in sys.modules:
        return False
    from alcid.spark.session import running_session

    return running_session() is not None


def no_iceberg(name: str) -> UnsupportedError:
    """The error for `catalog.db.table` that says which settings an Iceberg table needs."""
    from alcid.spark.iceberg import RUNTIME_PACKAGE

    catalog = f"spark.sql.catalog.{name.split('.', maxsplit=1)[0].strip('`')}"
    return UnsupportedError(
        f"{name}: no such folder, and as the name of an Iceberg table it needs"
        f" --conf spark.jars.packages={RUNTIME_PACKAGE}"
        f" --conf {catalog}=org.apache.iceberg.spark.SparkCatalog and the settings {catalog}.* of"
        " that catalog"
    )


_STDERR = 2
_STARTED, _FAILED = b"\0started\n", b"\0failed\n"


@contextmanager
def stderr_buffered() -> Iterator[None]:
    """Buffer what this process and processes started within print on stderr.

    The lines are printed if the block fails and dropped otherwise; later lines are passed on.
    """
    sys.stderr.flush()
    own, (read, write) = os.dup(_STDERR), os.pipe()
    lines = _Lines(read, own)
    threading.Thread(target=lines.run, daemon=True).start()
    os.dup2(write, _STDERR)
    os.close(write)
    outcome = _FAILED
    try:
        yield
        outcome = _STARTED
    finally:
        sys.stderr.flush()
        os.write(_STDERR, outcome)
        os.dup2(own, _STDERR)  # `own` stays open, for what comes later
        lines.is_decided.wait()


class _Lines:
    """Lines of a pipe, buffered until a marker line says whether to print or drop them."""

    def __init__(self, read: int, own: int) -> None:
        self._read, self._own = read, own
        self.is_decided = threading.Event()

    def run(self) -> None:
        """Read until all writers have ended."""
        buffered: list[bytes] = []
        with os.fdopen(self._read, "rb") as lines:
            for line in lines:
                if self.is_decided.is_set():
                    os.write(self._own, line)
                elif line.endswith((_STARTED, _FAILED)):
                    if line.endswith(_FAILED):
                        os.write(self._own, b"".join([*buffered, line.removesuffix(_FAILED)]))
                    self.is_decided.set()
                else:
                    buffered.append(line)


def require_paimon(table: AnyTable, command: str) -> PaimonTable:
    """The table, if it is a Paimon table.

    Raises:
        UnsupportedError: It is of another kind.
    """
    from alcid.tables.paimon_table import PaimonTable

    if isinstance(table, PaimonTable):
        return table
    raise UnsupportedError(
        f"{table.location}: {command} is for Paimon tables, found {type(table).__name__}"
    )
