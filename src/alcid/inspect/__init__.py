"""HTML representations of public objects, and drawings of bytes: above everything that they show.

Nothing below imports this package. How each type looks is registered in `alcid.inspect.display`:

```python
alcid.inspect.save_html(table.explain("id = 7"), "plan.html")
```

Notebooks show the same by themselves, because `import alcid` registers the types with IPython.
"""

from __future__ import annotations

import sys
from os import PathLike
from pathlib import Path

__all__ = ["register_with_ipython", "save_html", "to_html"]


def to_html(shown: object) -> str:
    """A page about a table, a plan, a report or an index, which loads nothing over the network."""
    from alcid.inspect.display import page_of

    return page_of(shown)


def save_html(shown: object, path: str | PathLike[str]) -> None:
    """Write the page about an object to a file."""
    Path(path).write_text(to_html(shown), encoding="utf-8")


def register_with_ipython() -> None:
    """Let a running IPython show objects as HTML; without one, do nothing."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if shell is None:
        return
    from alcid.inspect.display import fragment_of, shown_types

    formatter = shell.display_formatter.formatters["text/html"]
    for shown_type in shown_types():
        formatter.for_type(shown_type, fragment_of)
