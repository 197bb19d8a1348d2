"""A demo of everything that tables can do, with a report; `alcid demo` and `make demo` run it.

```python
import alcid_demo

alcid_demo.run("alcid-demo", report_progress=print).ok
```
"""

from __future__ import annotations

from alcid_demo.report import DemoReport
from alcid_demo.running import ROWS, claim_folder, run

__all__ = ["ROWS", "DemoReport", "claim_folder", "run"]
