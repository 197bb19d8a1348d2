"""The table that a command works on: what TABLE names, opened as the options say."""

from __future__ import annotations

import os
import warnings
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from alcid.cli.options import pairs
from alcid.errors import OptionError, UnsupportedError

if TYPE_CHECKING:
    from alcid import IcebergTable, PaimonTable, ParquetTable

    AnyTable: TypeAlias = ParquetTable | PaimonTable | IcebergTable

__all__ = ["Opening", "ReadOpening", "open_table", "start_spark"]

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
    from alcid.cli.iceberg_settings import could_have_iceberg, no_iceberg
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
    from alcid.cli.spark_start import held_back
    from alcid.spark import jvm
    from alcid.spark.session import running_session
    from alcid.spark.spark_errors import spark_errors

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
