"""`alcid demo`."""

from __future__ import annotations

from typing import Annotated

import typer

from alcid.cli.app import Section, command
from alcid.cli.options import Json

__all__ = ["demo"]


@command(Section.BEGIN)
def demo(
    folder: Annotated[
        str,
        typer.Option(
            metavar="FOLDER",
            help="Where tables and report go: a new folder, or that of an earlier demo, which is"
            " made anew.",
        ),
    ] = "alcid-demo",
    rows: Annotated[int, typer.Option(min=1000, help="How many events to make.")] = 2_000_000,
    report: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="Where the page goes; else FOLDER/report.html.", show_default=False
        ),
    ] = None,
    conf: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="A setting of Spark; may be repeated. With Iceberg's jar, as in"
            " spark.jars.packages, the demo shows an Iceberg table too.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Try all of it on made-up tables, and check every answer.

    Tables are made, indexed, asked and changed. It runs on a Spark of this machine, takes a minute
    or two, and tells what it does with the Python that you would write. Every question is asked
    with indexes, without, and of plain Spark. The status is 1 if one answer differs or one check
    fails. The tables stay, to go on with.

    \b
    Examples:
      alcid demo
      alcid demo --rows 200000 --folder /tmp/demo
    """  # noqa: D301
    import alcid_demo as demos
    from alcid.cli.printing import print_lines, print_report
    from alcid.cli.tables import Opening, start_spark
    from alcid_demo.folder import claim

    claim(folder)  # before Spark is started, which takes a while
    if not as_json:
        print_lines(f"{rows:,} events in {folder}, on a Spark of this machine")
    spark = start_spark(Opening(conf=conf or []))
    tell = None if as_json else print_lines
    found = demos.run(folder, rows=rows, report=report, spark=spark, tell=tell)
    print_report(found, as_json=as_json)
    if not as_json:
        print_lines(f"the plan of each query, and how to go on: {found.page}")
    if not found.ok:
        raise typer.Exit(1)
