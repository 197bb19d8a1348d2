"""The demo: one run through all that tables can do, with a report.

```python
import alcid.demo

alcid.demo.run("alcid-demo", tell=print).ok
```
"""

from __future__ import annotations

from alcid.demo.report import DemoReport
from alcid.demo.running import ROWS, run

__all__ = ["ROWS", "DemoReport", "run"]
