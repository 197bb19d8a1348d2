"""Every block of README.md and docs/ runs as it is, and so does every example."""

from __future__ import annotations

import ast
import contextlib
import doctest
import io
import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import alcid
from alcid.cli import main
from alcid.spark import jvm
from alcid.spark.iceberg import RUNTIME_PACKAGE
from alcid.spark.jvm.iceberg import RUNTIME_CLASS
from tests.golden.iceberg_jvm import RUNTIME
from tests.golden.jvm import fetch_jar
from tests.interop.peers import UNAVAILABLE, unavailable
from tests.pages import ICEBERG_PAGES, SPARK_PAGES

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))

FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
SHOWN = re.compile(r"#\s*->\s*(.+)$")
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
TARGET = re.compile(r"^([a-z]+):", re.MULTILINE)
INSTALLED = re.compile(r"(?:\.|alcid)(?:\[([\w,]+)\])?")
COMMANDS = ROOT / "src" / "alcid" / "cli" / "commands"


@dataclass(frozen=True)
class Block:
    """Code between two fences of a page."""

    kind: str
    source: str
    location: str


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text("utf-8")
    assert text.count("\n```") % 2 == 0, f"{page.name}: a fence is not closed"
    return [
        Block(
            match[1].strip(), match[2], f"{page.name}:{text.count(chr(10), 0, match.start()) + 2}"
        )
        for match in FENCE.finditer(text)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_runs_as_written(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    if page.name in SPARK_PAGES:  # alcid.session() then returns the shared one
        spark = request.getfixturevalue("spark")
        if page.name in ICEBERG_PAGES and not jvm.has_class(spark, RUNTIME_CLASS):
            unavailable("Iceberg's Spark runtime needs mvn and the network")
    monkeypatch.chdir(tmp_path)
    for setting in ("timezone", "case_sensitive"):  # a page may change them
        monkeypatch.setattr(alcid.config, setting, getattr(alcid.config, setting))
    for variable, value in {"NO_COLOR": "1", "COLUMNS": "100", "TERM": "dumb"}.items():
        monkeypatch.setenv(variable, value)
    namespace: dict[str, Any] = {"__name__": page.stem}
    for block in blocks_of(page):
        match block.kind:
            case "python" if block.source.lstrip().startswith(">>>"):
                run_doctest(block, namespace)
            case "python":
                run_python(block, namespace)
            case "console":
                run_console(block)
            case "bash":
                check_bash(block)
            case "text":
                pass  # shown only
            case kind:
                pytest.fail(f"{block.location}: found a block of kind {kind!r}")


def run_doctest(block: Block, namespace: dict[str, Any]) -> None:
    test = doctest.DocTestParser().get_doctest(block.source, namespace, block.location, None, 0)
    report: list[str] = []
    doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=report.append, clear_globs=False)
    namespace |= test.globs
    assert not report, "".join(report)


def run_python(block: Block, namespace: dict[str, Any]) -> None:
    """Run a block; `expression  # -> text` shows the `repr` of its value, there or below it."""
    lines = block.source.splitlines()
    statements = ast.parse(block.source, block.location).body
    checked = 0
    for statement in statements:
        end = statement.end_lineno or 1
        shown = SHOWN.search(lines[end - 1]) or SHOWN.match("".join(lines[end : end + 1]))
        if shown is None:
            exec(compile(ast.Module([statement], []), block.location, "exec"), namespace)
            continue
        checked += 1
        assert isinstance(statement, ast.Expr), f"{block.location}: only an expression has a value"
        value = eval(compile(ast.Expression(statement.value), block.location, "eval"), namespace)
        assert repr(value) == shown[1].strip(), f"{block.location}: {ast.unparse(statement)}"
    shown_lines = sum(1 for line in lines if SHOWN.search(line))
    assert checked == shown_lines, f"{block.location}: a shown value was not checked"


def run_console(block: Block) -> None:
    """Run each `$ alcid ...`, where the blocks before it wrote their files."""
    for command, expected in commands_of(block):
        program, *arguments = shlex.split(command)
        assert program == "alcid", f"{block.location}: {command}"
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            main(arguments)
        output = printed.getvalue()
        assert doctest.OutputChecker().check_output(expected, output, OPTIONS), (
            f"{block.location}: $ {command}\nfound:\n{output}\nexpected:\n{expected}"
        )


def commands_of(block: Block) -> Iterator[tuple[str, str]]:
    for part in re.split(r"^\$ ", block.source, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def check_bash(block: Block) -> None:
    """Commands that are too slow to run here: the files that they name must exist."""
    targets = TARGET.findall((ROOT / "Makefile").read_text("utf-8"))
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"][
        "optional-dependencies"
    ]
    for line in block.source.splitlines():
        words = shlex.split(line, comments=True)
        match words:
            case ["make", target, *_]:
                assert target in targets, f"{block.location}: {line}"
            case [python, "-m", module, *_] if python.endswith("python"):
                path = ROOT / module.replace(".", "/")
                runs = path.with_suffix(".py").exists() or (path / "__main__.py").exists()
                assert runs, f"{block.location}: {line}"
            case ["pip", "install", *packages]:
                for package in packages:
                    match = INSTALLED.fullmatch(package)
                    assert match, f"{block.location}: {line}"
                    named = set((match[1] or "").split(",")) - {""}
                    assert named <= set(extras), f"{block.location}: {line}"
            case ["alcid", command, *_]:
                assert (COMMANDS / f"{command}.py").exists(), f"{block.location}: {line}"
            case _:
                pytest.fail(f"{block.location}: expected make, pip or alcid, found {line!r}")


def test_the_iceberg_tables_of_the_readme_are_made_in_a_new_process(tmp_path: Path) -> None:
    """As users copy them: a separate session, and a warehouse below the folder."""
    try:
        jar = fetch_jar(RUNTIME)
    except UNAVAILABLE:
        unavailable("Iceberg's Spark runtime needs mvn and the network")
    text = (ROOT / "README.md").read_text("utf-8")
    part = text.partition("## Iceberg tables\n")[2].partition("\n## ")[0]
    blocks = [match[2] for match in FENCE.finditer(part)]
    assert len(blocks) == 2
    package = f'"spark.jars.packages": "{RUNTIME_PACKAGE}"'
    assert blocks[0].count(package) == 1
    settings = blocks[0].replace(package, f'"spark.jars": "{jar}"')
    script = f"import alcid\n{settings}\n{blocks[1]}\nassert visits.verify().ok\nspark.stop()\n"
    ended = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert list((tmp_path / "warehouse" / "lake" / "shop" / "visits" / "data").glob("*.parquet"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_example_runs(example: Path, tmp_path: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-W", "error", example],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout
    assert not list(tmp_path.iterdir()), "an example cleans up"


def test_benchmark_runs_and_checks_its_answers(tmp_path: Path) -> None:
    output = tmp_path / "figures.json"
    chosen = ["--no-peer", "--rows", "1000", "2000", "--only", "bitmap int64, unique, 0"]
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.file_index", *chosen, "--output", output],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    figures = json.loads(output.read_text("utf-8"))
    results = [(result["index"], result["rows"]) for result in figures["results"]]
    indexes = ("bitmap", "range-bitmap")
    assert results == [(index, rows) for rows in (1000, 2000) for index in indexes]
    assert "| range-bitmap | int64, unique, 0..n-1 |" in ended.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        file = page.parent / path if path else page
        assert file.exists(), f"{page.name}: {target}"
        assert not anchor or anchor in anchors_of(file), f"{page.name}: {target}"


def anchors_of(page: Path) -> list[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings]


def test_every_page_has_a_name_of_its_own_and_a_place_in_the_site() -> None:
    names = [page.name for page in PAGES]
    assert sorted(set(names)) == sorted(names)  # the names of tests depend on them
    site = tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))["project"]
    assert sorted(pages_in(site["nav"])) == [
        str(page.relative_to(ROOT / "docs")) for page in sorted(PAGES[1:], key=str)
    ]


def pages_in(entries: list[dict[str, Any]]) -> Iterator[str]:
    for entry in entries:
        for page in entry.values():
            yield from [page] if isinstance(page, str) else pages_in(page)
