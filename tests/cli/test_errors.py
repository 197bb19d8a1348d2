"""A wrong file ends with status 1, a wrong command line with 2: one line, no traceback."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.samples import TYPES, Alcid, patched

COMMANDS = [("inspect",), ("inspect", "--json"), ("probe", "score > 60", "--type", "score=DOUBLE")]
MAGIC = "00054e4ed01a35ae"
NOT_AN_INDEX = (
    "not an index file at offset 0: found {}, expected a Paimon file index,"
    " a Paimon deletion vector file, a Delta deletion vector file, a Paimon hash index,"
    " a Puffin file, a deletion vector or a theta sketch"
)

NOT_EXACT = (
    "--top-n needs a PREDICATE that the indexes answer exactly; this one needs the rows themselves"
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", NOT_AN_INDEX.format("no bytes")),
        (b"garbage in it", NOT_AN_INDEX.format("text, 'garbage in it'")),
        (b"PAR1....", NOT_AN_INDEX.format("a Parquet file")),
        (bytes.fromhex(MAGIC) + b"\0\0", "truncated at offset 8: found 2 bytes, expected 4"),
        (
            bytes.fromhex(MAGIC) + bytes.fromhex("00000002 00000018"),
            "unknown container version at offset 8: found 2, expected 1",
        ),
        (
            bytes.fromhex(MAGIC) + bytes.fromhex("00000001 00000018 00000001"),
            "bad head length at offset 12: found 24, expected 0 to 20",
        ),
    ],
)
def test_bad_files(
    alcid: Alcid, tmp_path: Path, command: tuple[str, ...], content: bytes, problem: str
) -> None:
    path = tmp_path / "bad.index"
    path.write_bytes(content)
    run = alcid(command[0], path, *command[1:])
    assert (run.status, run.out, run.err) == (1, "", f"alcid: {path}: {problem}\n")


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_no_file(alcid: Alcid, tmp_path: Path, command: tuple[str, ...]) -> None:
    path = tmp_path / "none.index"
    run = alcid(command[0], path, *command[1:])
    assert (run.status, run.out, run.err) == (1, "", f"alcid: {path}: No such file or directory\n")


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_directory_and_pipe(alcid: Alcid, tmp_path: Path, command: tuple[str, ...]) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    # To open the pipe would wait for a writer.
    for path, kind in ((tmp_path, "a directory"), (pipe, "a pipe or a device")):
        run = alcid(command[0], path, *command[1:])
        problem = f"cannot be read: found {kind}, expected a file"
        assert (run.status, run.out, run.err) == (1, "", f"alcid: {path}: {problem}\n")


def test_truncated_file(alcid: Alcid, sample: Path) -> None:
    sample.write_bytes(sample.read_bytes()[:900])
    problem = "indexes do not fill the file at offset 936: found 900, expected 936"
    run = alcid("inspect", sample)
    assert (run.status, run.out, run.err) == (1, "", f"alcid: {sample}: {problem}\n")


def test_names_in_errors_stay_on_one_line(alcid: Alcid, sample: Path) -> None:
    at = sample.read_bytes().index(b"bitmap", 100)
    patched(sample, at, b"bit\nap\xff")
    run = alcid("inspect", sample)
    assert (run.status, run.out, run.err.count("\n")) == (1, "", 1)
    assert r"index range-bit\nap of" in run.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--type", "score"], "--type: found 'score', expected COLUMN=TYPE, as score=DOUBLE"),
        (["--type", "score=INT", "--type", "score=INT"], "--type: column score is given twice"),
        (
            ["--type", "score=NO"],
            "--type score: type 'NO' at position 0: found 'NO', expected the name of a type",
        ),
        (
            ["--type", "score=BYTES"],
            "--type: column score: range-bitmap does not take BYTES; use bloom-filter",
        ),
        (
            ["--type", "a=INT", "--type", "tags=INT", "--type", "TAGS=MAP<STRING, INT>"],
            "column tags: fits more than one column: tags, TAGS",
        ),
        (["--column", "score"], "column score: its type is needed, as in --type score=TYPE"),
        (
            ["--column", "scores"],
            (
                "column scores: no index of it;"
                " the file has indexes of class_id, day, name, score, tags[a]"
            ),
        ),
    ],
)
def test_bad_options_of_inspect(
    alcid: Alcid, sample: Path, options: list[str], message: str
) -> None:
    run = alcid("inspect", sample, *options)
    assert (run.status, run.out, run.err) == (2, "", f"alcid: {message}\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["score >"], "not a predicate: cannot read the text near >: expected a value"),
        (["score = 1 = "], "not a predicate: cannot read the text near =: expected a value"),
        ([""], "not a predicate: no text, expected one boolean expression"),
        (["day = 'soon'"], "column day of type DATE does not take the str 'soon': it is no date"),
        ([], "expected a PREDICATE, or --top-n and --order-by, found neither"),
        (["--top-n", "3"], "--top-n and --order-by go together, found only one of them"),
        (
            ["scores = 1 AND score > 1", "--top-n", "3", "--order-by", "score"],
            f"{NOT_EXACT} (no index of column scores)",
        ),
        (
            ["name LIKE '%n'", "--top-n", "3", "--order-by", "score"],
            f"{NOT_EXACT} (no index can answer: (name LIKE '%n'))",
        ),
    ],
)
def test_bad_questions(alcid: Alcid, sample: Path, arguments: list[str], message: str) -> None:
    run = alcid("probe", sample, *arguments, *TYPES)
    assert (run.status, run.out, run.err) == (2, "", f"alcid: {message}\n")


def test_type_of_an_asked_column_is_needed(alcid: Alcid, sample: Path) -> None:
    for arguments in (["score > 1"], ["--top-n", "1", "--order-by", "score"]):
        run = alcid("probe", sample, *arguments)
        message = "column score: its type is needed, as in --type score=TYPE"
        assert (run.status, run.out, run.err) == (2, "", f"alcid: {message}\n")


def test_types_of_other_columns_are_named_where_one_is_missing(alcid: Alcid, sample: Path) -> None:
    types = ("--type", "scor=DOUBLE", "--type", "day=DATE", "--type", "tag=INT")
    message = (
        "column score: its type is needed, as in --type score=TYPE;"
        " one was given for scor, tag, without an index here"
    )
    for command in (["inspect", sample, "--column", "score"], ["probe", sample, "score > 1"]):
        run = alcid(*command, *types)
        assert (run.status, run.out, run.err) == (2, "", f"alcid: {message}\n")


@pytest.mark.parametrize(
    ("arguments", "problem", "command"),
    [
        (["nothing"], "no such command 'nothing'", "alcid"),
        (["qurey"], "no such command 'qurey'; did you mean 'query'?", "alcid"),
        (["query", "x", "--wher", "a"], "no such option: --wher", "alcid query"),
        (["inspect"], "missing argument 'FILE'", "alcid inspect"),
        (["inspect", "x", "--no"], "no such option: --no", "alcid inspect"),
        (
            ["inspect", "x", "--limit", "-1"],
            "--limit: found '-1', expected a number, 0 or more;",
            "alcid inspect",
        ),
        (
            ["query", "x", "--limit", "few"],
            "--limit: found 'few', expected a whole number, 0 or more;",
            "alcid query",
        ),
        (
            ["query", "x", "--snapshot", "1.5"],
            "--snapshot: found '1.5', expected a whole number;",
            "alcid query",
        ),
        (
            ["verify", "x", "--sample", "2"],
            "--sample: found '2', expected a number from 0 to 1;",
            "alcid verify",
        ),
        (
            ["query", "x", "--format", "xml"],
            "--format: found 'xml', expected one of table, json, jsonl, csv, parquet;",
            "alcid query",
        ),
        (
            ["probe", "x", "--top-n", "0", "--order-by", "a"],
            "--top-n: found '0', expected a number, 1 or more;",
            "alcid probe",
        ),
    ],
)
def test_usage_errors_are_one_line(
    alcid: Alcid, arguments: list[str], problem: str, command: str
) -> None:
    run = alcid(*arguments)
    assert (run.status, run.out, run.err.count("\n")) == (2, "", 1)
    assert run.err.startswith(f"alcid: {problem}")  # then what typer says, which may change
    assert run.err.endswith(f"; see {command} --help\n")
