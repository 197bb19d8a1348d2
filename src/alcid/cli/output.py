"""The two forms of what a command found: text for people, JSON for programs."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, Protocol

from alcid.cli.inspect import FileIndexReport, Listing
from alcid.cli.inspect.file_index import IndexReport, ListedValue
from alcid.cli.inspect.listing import Item
from alcid.cli.printing import print_json
from alcid.cli.probe import ProbeReport

__all__ = ["JsonOutput", "Output", "choose_output"]


class Output(Protocol):
    """Shows reports on stdout."""

    def file(self, report: FileIndexReport | Listing) -> None:
        """What `inspect` found."""

    def probe(self, report: ProbeReport) -> None:
        """What `probe` was answered."""


def choose_output(*, as_json: bool) -> Output:
    """The form that was asked for."""
    if as_json:
        return JsonOutput()
    from alcid.cli.text import TextOutput

    return TextOutput()


class JsonOutput:
    """One document on one line, in ASCII, so that it passes through any pipe.

    Decimals, NaN and the infinities are text, and bytes are text in hexadecimal.
    """

    def file(self, report: FileIndexReport | Listing) -> None:
        """What `inspect` found."""
        document: dict[str, Any] = {"file": report.file, "kind": report.kind, "size": report.size}
        document |= report.head
        match report:
            case FileIndexReport():
                lists_values = report.lists_values
                document["indexes"] = [
                    _index(index, lists_values=lists_values) for index in report.indexes
                ]
            case Listing(things=str(things)):
                document |= {"properties": report.properties} if report.properties else {}
                document[things] = [_item(item) for item in report.items]
                document["truncated"] = report.truncated
                document["count"] = report.count
                document["damaged"] = report.damaged
        print_json(document)

    def probe(self, report: ProbeReport) -> None:
        """What `probe` was answered."""
        print_json(asdict(report))


def _index(index: IndexReport, *, lists_values: bool) -> dict[str, Any]:
    fields = asdict(index)
    del fields["values"]
    facts = fields.pop("facts")
    found = {**fields, **facts}
    if lists_values:
        values = index.values
        found["values"] = None if values is None else [_listed(value) for value in values]
        found["truncated"] = index.truncated
    return found


def _item(item: Item) -> dict[str, Any]:
    properties = {"properties": item.properties} if item.properties else {}
    return {
        **item.columns,
        "state": item.state,
        "problem": item.problem,
        **item.facts,
        **properties,
    }


def _listed(value: ListedValue) -> dict[str, Any]:
    return {**asdict(value), "truncated": value.truncated}
