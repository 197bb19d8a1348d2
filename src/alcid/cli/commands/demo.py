"""`alcid demo`."""

from __future__ import annotations

from typing import Annotated

import typer

from alcid.cli.app import Section, command
from alcid.cli.options import Json


@command(Section.BEGIN)
def demo(
    folder: Annotated[
        str,
        typer.Option(
            metavar="FOLDER",
            help="The folder for tables and report: a new one, or that of an earlier demo, which"
            " is replaced.",
        ),
    ] = "alcid-demo",
    rows: Annotated[
        int, typer.Option(min=1000, help="The number of events to generate.")
    ] = 2_000_000,
    report: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The report page.", show_default="FOLDER/report.html"),
    ] = None,
    conf: Annotated[
        list[str] | None,
        typer.Option(
            metavar="KEY=VALUE",
            help="A Spark setting; may be repeated. With Iceberg's jar in spark.jars.packages, the"
            " demo includes an Iceberg table.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Try everything on generated tables, and check every answer.

    Tables are created, indexed, queried and changed by a local Spark, in a minute or two; each step
    prints the Python code that you would write. Every query runs with indexes, without, and on
    plain Spark. The exit status is 1 if an answer differs or a check fails. The tables remain for
    you to explore.

    \b
    Examples:
      alcid demo
      alcid demo --rows 200000 --folder /tmp/demo
    """  # noqa: D301
    import alcid_demo
    from alcid.cli.printing import print_lines, print_report
    from alcid.cli.tables import Opening, start_spark

    alcid_demo.claim_folder(folder)  # before Spark is started, which takes a while
    if not as_json:
        print_lines(f"{rows:,} events in {folder}, on a local Spark")
    spark = start_spark(Opening(conf=conf or []))
    report_progress = None if as_json else print_lines
    result = alcid_demo.run(
        folder, rows=rows, report=report, spark=spark, report_progress=report_progress
    )
    print_report(result, as_json=as_json)
    if not as_json:
        print_lines(f"the plan of each query, and what to try next: {result.page}")
    if not result.ok:
        raise typer.Exit(1)
