"""The shape of the code: the sizes of its modules, their dependencies, the length of a look-up.

    python -m tests.shape                     this checkout, as text
    python -m tests.shape --json              the same, for a script
    python -m tests.shape --source ../old/src another checkout, measured in the same way

Lines are those of `alcid` itself. A line counts as code unless it is blank, a comment, part of a
docstring or part of an import. An importer is a module that names another in an import, wherever
the import stands; a name that comes through the `__init__` of a package counts for the module that
defines it. The look-up finds one row by its id in a folder of four Parquet files with bloom
filters, on a table that is open and was queried before. Every call of Python code of `alcid`
counts, comprehensions and resumed generators included.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

PACKAGE = "alcid"
SOURCE = Path(__file__).parents[1] / "src"


@dataclass(frozen=True, slots=True)
class Shape:
    """The measures of the modules."""

    modules: int
    lines: int
    code: int
    docstrings: int
    imports: int
    comments_and_blank: int
    median: int
    p90: int
    single_importers: int
    """Modules, apart from packages, that exactly one other imports."""
    cycles: int
    """Groups of modules that import each other when they are loaded."""


@dataclass(frozen=True, slots=True)
class LookUp:
    """The measures of the look-up of one row."""

    modules: int
    calls: int


class Module:
    """A module, parsed from its text."""

    def __init__(self, name: str, path: Path) -> None:
        self.name, self.is_package = name, path.name == "__init__.py"
        self.text = path.read_text("utf-8")
        self.tree = ast.parse(self.text, str(path))
        self.lines = self.text.count("\n")

    def counts(self) -> Counter[str]:
        """Lines by what they hold."""
        kinds = ["other" if _is_blank(line) else "code" for line in self.text.splitlines()]
        for node in ast.walk(self.tree):
            kind = _kind(node)
            if kind is not None:
                assert isinstance(node, ast.stmt)
                end = node.end_lineno or node.lineno
                kinds[node.lineno - 1 : end] = [kind] * (end - node.lineno + 1)
        return Counter(kinds)

    def imports(self, *, at_load: bool) -> Iterator[tuple[str, str | None]]:
        """Modules, and the name that is imported from each, if one is."""
        for node in _loaded(self.tree) if at_load else ast.walk(self.tree):
            if isinstance(node, ast.Import):
                yield from ((alias.name, None) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield from ((node.module, alias.name) for alias in node.names)


def _is_blank(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")


def _kind(node: ast.AST) -> str | None:
    if isinstance(node, ast.Import | ast.ImportFrom):
        return "imports"
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        # Also the text below an attribute, which documents it.
        return "docstrings" if isinstance(node.value.value, str) else None
    return None


def _loaded(tree: ast.Module) -> Iterator[ast.AST]:
    """The nodes that run when a module is loaded: neither bodies of functions nor type checks."""
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            pending.extend(node.orelse)
            continue
        pending.extend(ast.iter_child_nodes(node))


def read_modules(source: Path) -> dict[str, Module]:
    """All modules of the package below a folder, by name."""
    modules = {}
    for path in sorted((source / PACKAGE).rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        modules[name] = Module(name, path)
    return modules


def import_graph(modules: Mapping[str, Module], *, at_load: bool) -> dict[str, set[str]]:
    """The modules that each one imports; names of a package lead to their modules."""
    exported: dict[str, dict[str, str]] = {
        name: {
            taken: origin
            for origin, taken in module.imports(at_load=False)
            if taken is not None and origin in modules
        }
        for name, module in modules.items()
        if module.is_package
    }

    def target(name: str, taken: str | None) -> str:
        if taken is not None and f"{name}.{taken}" in modules:
            return f"{name}.{taken}"
        if taken is not None and taken in exported.get(name, {}):
            return target(exported[name][taken], taken)
        return name

    return {
        name: {
            target(origin, taken)
            for origin, taken in module.imports(at_load=at_load)
            if origin in modules
        }
        - {name}
        for name, module in modules.items()
    }


def count_cycles(graph: Mapping[str, set[str]]) -> int:
    """How many groups of two or more nodes form cycles."""
    reach: dict[str, set[str]] = {}
    for start in graph:
        reached: set[str] = set()
        pending = list(graph[start])
        while pending:
            name = pending.pop()
            if name not in reached:
                reached.add(name)
                pending.extend(graph.get(name, ()))
        reach[start] = reached
    groups = {
        frozenset(name for name in reach[start] if start in reach[name])
        for start in graph
        if start in reach[start]
    }
    return len(groups)


def measure_modules(source: Path = SOURCE) -> Shape:
    """Measure all modules below a folder."""
    modules = read_modules(source)
    sizes = sorted(module.lines for module in modules.values())
    counts: Counter[str] = Counter()
    for module in modules.values():
        counts += module.counts()
    importers: Counter[str] = Counter()
    for name, targets in import_graph(modules, at_load=False).items():
        if not modules[name].is_package:
            importers.update(targets)
    single = [
        name for name, count in importers.items() if count == 1 and not modules[name].is_package
    ]
    return Shape(
        modules=len(modules),
        lines=sum(sizes),
        code=counts["code"],
        docstrings=counts["docstrings"],
        imports=counts["imports"],
        comments_and_blank=counts["other"],
        median=int(statistics.median(sizes)),
        p90=sizes[int(len(sizes) * 0.9)],
        single_importers=len(single),
        cycles=count_cycles(import_graph(modules, at_load=True)),
    )


_LOOK_UP = """
import json, sys, threading
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import alcid

folder = sys.argv[1]
ids = np.random.default_rng(1).permutation(400_000)
for part in range(4):
    rows = {"id": ids[part * 100_000 : (part + 1) * 100_000]}
    pq.write_table(pa.table(rows), f"{folder}/{part}.parquet", write_page_index=True)
table = alcid.parquet(folder)
table.build_indexes({"file-index.bloom-filter.columns": "id"}, progress=False)
assert table.scan("id = 17").to_arrow().num_rows == 1
root = alcid.__path__[0]
calls = {}

def count(frame, event, _):
    if event == "call" and frame.f_code.co_filename.startswith(root):
        calls[frame.f_code] = calls.get(frame.f_code, 0) + 1

threading.setprofile(count)
sys.setprofile(count)
rows = table.scan("id = 4711").to_arrow()
sys.setprofile(None)
threading.setprofile(None)
assert rows.num_rows == 1
modules = {code.co_filename for code in calls}
print(json.dumps({"modules": len(modules), "calls": sum(calls.values())}))
if len(sys.argv) > 2:
    for code, n in sorted(calls.items(), key=lambda item: -item[1])[:40]:
        print(n, code.co_filename[len(root) :], code.co_qualname, file=sys.stderr)
"""


def measure_look_up(source: Path = SOURCE, *, verbose: bool = False) -> LookUp:
    """Measure the look-up of one row in a separate process."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", _LOOK_UP, folder, *(["-v"] if verbose else [])]
        environment = os.environ | {"PYTHONPATH": str(source)}
        done = subprocess.run(command, check=True, env=environment, stdout=subprocess.PIPE)
    return LookUp(**json.loads(done.stdout))


def import_seconds(source: Path = SOURCE, runs: int = 7) -> float:
    """The processor time of `import alcid` beside that of its dependencies, best of some runs."""
    probe = (
        "import time, numpy, pyarrow, pyroaring; t = time.process_time(); import alcid;"
        " print(time.process_time() - t)"
    )
    command = [sys.executable, "-c", probe]
    environment = os.environ | {"PYTHONPATH": str(source)}
    return min(
        float(subprocess.run(command, check=True, env=environment, capture_output=True).stdout)
        for _ in range(runs)
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--source", type=Path, default=SOURCE, help="the folder that has alcid/")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--calls", action="store_true", help="print the functions called most")
    arguments = parser.parse_args()
    source = arguments.source.resolve()
    figures: dict[str, float] = {
        **asdict(measure_modules(source)),
        **{
            f"look_up_{name}": value
            for name, value in asdict(measure_look_up(source, verbose=arguments.calls)).items()
        },
        "import_ms": round(1000 * import_seconds(source), 1),
    }
    if arguments.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name.replace('_', ' '):20} {value:>10,}")


if __name__ == "__main__":
    main()
