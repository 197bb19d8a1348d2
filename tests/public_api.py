"""Write public-api.txt: every public name of `alcid` with its signature, one a line.

python -m tests.public_api

CI compares the file with the code, so that no name, argument or default changes unnoticed.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import alcid
import alcid.testing
from alcid.scan import Scan
from alcid.scan.explain import Explanation
from tests.make_python_reference import WITHIN

LIST = Path(__file__).parents[1] / "public-api.txt"
_RESULTS = (Scan, Explanation)
"""Classes that users get from a table, but never construct themselves."""


def public_api() -> str:
    lines = [line for name in alcid.__all__ for line in _describe(f"alcid.{name}", _get(name))]
    for name in alcid.testing.__all__:
        lines += _describe(f"alcid.testing.{name}", getattr(alcid.testing, name))
    for kind in _RESULTS:
        lines += _describe(f"{kind.__module__}.{kind.__name__}", kind)
    return "".join(f"{line}\n" for line in sorted(set(lines)))


def _get(name: str) -> Any:
    return getattr(alcid, name)


def _describe(name: str, value: Any) -> Iterator[str]:
    if inspect.ismodule(value):
        for inner in getattr(value, "__all__", ()):
            yield from _describe(f"{name}.{inner}", getattr(value, inner))
    elif inspect.isclass(value):
        yield f"class {name}({', '.join(_bases(value))})"
        for inner in dir(value):
            member = inspect.getattr_static(value, inner)
            if not inner.startswith("_") and inner not in WITHIN and _is_ours(value, inner):
                yield from _describe_member(f"{name}.{inner}", member)
    elif callable(value):
        yield f"{name}{_signature(value)}"
    else:
        yield name


def _describe_member(name: str, member: Any) -> Iterator[str]:
    if isinstance(member, classmethod | staticmethod):
        yield f"{name}{_signature(member.__func__)}"
    elif inspect.isfunction(member):
        yield f"{name}{_signature(member)}"
    else:
        yield name


def _is_ours(kind: type, name: str) -> bool:
    """Whether a name of a class comes from alcid, and not from the builtin base."""
    return any(name in base.__dict__ for base in kind.__mro__ if base.__module__[:5] == "alcid")


def _bases(kind: type) -> list[str]:
    return [base.__name__ for base in kind.__bases__ if base is not object]


def _signature(function: Any) -> str:
    return str(inspect.signature(function)).replace("'", "")


if __name__ == "__main__":
    LIST.write_text(public_api(), "utf-8")
