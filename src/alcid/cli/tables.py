"""The table that a command works on: what TABLE names, opened as the options say.

Whether a Spark that is not started yet could have Iceberg; to start it takes long.

Keeps what a JVM prints while Spark starts, which says nothing to a user if it does start.

Tables that a command is only for.
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
    from alcid.tables.paimon_table import PaimonTable

__all__ = [
    "Opening",
    "ReadOpening",
    "could_have_iceberg",
    "held_back",
    "no_iceberg",
    "open_table",
    "require_paimon",
    "start_spark",
]

if TYPE_CHECKING:
    from alcid.tables.iceberg_table import IcebergTable
    from alcid.tables.paimon_table import PaimonTable
    from alcid.tables.parquet_table import ParquetTable

    AnyTable: TypeAlias = ParquetTable | PaimonTable | IcebergTable


_MASTER = "spark.master"
_NO_ICEBERG = "the session has no Iceberg"


@dataclass(frozen=True, slots=True)
class Opening:
    """Options of every command that opens a table: a command takes one, see `cli.app.command`."""

    spark: Annotated[
        bool,
        typer.Option(
            "--spark",
            help="Let Spark do the work on many files. Iceberg tables always need it, and appends"
            " to folders of Parquet files: they start it themselves.",
        ),
    ] = False
    conf: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="A setting of Spark, as of its catalogs; may be repeated. It starts Spark.",
            show_default=False,
        ),
    ] = None
    storage_option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="A key, an endpoint or such of an object store; may be repeated.",
            show_default=False,
        ),
    ] = None
    index_path: Annotated[
        str | None,
        typer.Option(
            metavar="FOLDER",
            help="Where the indexes of a Parquet folder are, if not beside its data.",
            show_default=False,
        ),
    ] = None
    strict: Annotated[
        bool, typer.Option("--strict", help="Fail where an index is damaged, and do not warn.")
    ] = False

    @property
    def needs_spark(self) -> bool:
        """Whether Spark was asked for."""
        return self.spark or bool(self.conf)


@dataclass(frozen=True, slots=True)
class ReadOpening(Opening):
    """Options of commands that only read: they also take a table of the past, or not compacted."""

    snapshot: Annotated[
        int | None,
        typer.Option(
            metavar="ID",
            help="Read the table as it was at a snapshot (Paimon, Iceberg).",
            show_default=False,
        ),
    ] = None
    ref: Annotated[
        str | None,
        typer.Option(
            "--tag",
            "--ref",
            metavar="NAME",
            help="Read the table as a tag keeps it, or a branch (Paimon, Iceberg).",
            show_default=False,
        ),
    ] = None
    merge_on_read: Annotated[
        bool,
        typer.Option(
            "--merge-on-read",
            help="Read rows of a Paimon table that no compaction has taken in yet, too.",
        ),
    ] = False


def open_table(
    name: str, how: Opening, *, needs_spark: bool = False, may_be_empty: bool = False
) -> AnyTable:
    """Open what TABLE names; Spark is started only where it is needed.

    Args:
        name: TABLE of the command line.
        how: The options.
        needs_spark: Whether the command needs it for a table of any kind.
        may_be_empty: Whether a folder without Parquet files is as it should be.

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
    """A session with the settings of `--conf`; the one that is running, if there is one."""
    import alcid
    from alcid.spark import jvm
    from alcid.spark.errors import spark_errors
    from alcid.spark.session import running_session

    given = pairs("--conf", how.conf)
    for key in given:
        if not key.startswith("spark."):
            raise OptionError(f"--conf: found {key}, expected a setting that starts with spark.")
    master = {"master": given.pop(_MASTER)} if _MASTER in given else {}
    running = running_session()
    with held_back() if running is None else nullcontext(), spark_errors():
        spark = alcid.session(config=given, **master)
    if running is None:
        jvm.silence(spark)
    return spark


# What brings jars along, or names a place that may.
_VARIABLES = (
    "PYSPARK_SUBMIT_ARGS",
    "SPARK_CLASSPATH",
    "SPARK_CONF_DIR",
    "SPARK_DIST_CLASSPATH",
    "SPARK_HOME",
    "SPARK_REMOTE",
)


def could_have_iceberg(settings: Iterable[str], environment: Mapping[str, str]) -> bool:
    """Whether anything can bring Iceberg into the session.

    Args:
        settings: The keys of `--conf`.
        environment: The variables of the process.

    >>> could_have_iceberg(["spark.jars.packages"], {}), could_have_iceberg([], {"SPARK_HOME": "/"})
    (True, True)
    """
    if any(key.startswith("spark.jars") or "classpath" in key.lower() for key in settings):
        return True
    if any(environment.get(name) for name in _VARIABLES) or _is_running():
        return True
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        return True  # then what starts Spark says that there is none
    folder = Path(found.origin).parent
    has_defaults = (folder / "conf" / "spark-defaults.conf").is_file()
    return has_defaults or any((folder / "jars").glob("*iceberg*.jar"))


def _is_running() -> bool:
    if "pyspark.sql" not in sys.modules:
        return False
    from alcid.spark.session import running_session

    return running_session() is not None


def no_iceberg(name: str) -> UnsupportedError:
    """The error for `catalog.db.table` that says how to come to an Iceberg table."""
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
def held_back() -> Iterator[None]:
    """Hold back what a process prints on stderr that is started within.

    It is printed if what is done within fails, and else is gone; what the process prints afterwards
    is passed on. What this process prints meanwhile takes the same way.
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
        lines.are_decided.wait()


class _Lines:
    """Lines of a pipe; a mark among them says what becomes of those before it."""

    def __init__(self, read: int, own: int) -> None:
        self._read, self._own = read, own
        self.are_decided = threading.Event()

    def run(self) -> None:
        """Read until all that could write have ended."""
        held: list[bytes] = []
        with os.fdopen(self._read, "rb") as lines:
            for line in lines:
                if self.are_decided.is_set():
                    os.write(self._own, line)
                elif line.endswith((_STARTED, _FAILED)):
                    if line.endswith(_FAILED):
                        os.write(self._own, b"".join([*held, line.removesuffix(_FAILED)]))
                    self.are_decided.set()
                else:
                    held.append(line)


def require_paimon(table: AnyTable, command: str) -> PaimonTable:
    """The table, if it is one of Paimon.

    Raises:
        UnsupportedError: It is another.
    """
    from alcid.tables.paimon_table import PaimonTable

    if isinstance(table, PaimonTable):
        return table
    raise UnsupportedError(
        f"{table.location}: {command} is for Paimon tables, found {type(table).__name__}"
    )
