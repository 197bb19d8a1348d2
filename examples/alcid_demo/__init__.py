"""The demo: one run through all that tables can do, with a report.

```python
import alcid_demo

alcid_demo.run("alcid-demo", tell=print).ok
```
"""

from __future__ import annotations

from alcid_demo.report import DemoReport
from alcid_demo.running import ROWS, run

__all__ = ["ROWS", "DemoReport", "run"]
