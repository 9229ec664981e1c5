"""PySpark's notices on standard error, which would drown a user's own lines."""

from __future__ import annotations

import sys

_TALKATIVE = "pyspark.sql.streaming.transform_with_state_driver_worker"


def without_notices() -> None:
    """Silences the process that PySpark starts once for each query to look at its state: it would print each step.
    Errors are reported in another way. Its first line is printed before this package is imported, and stays.
    """
    main = sys.modules.get("__main__")
    if getattr(getattr(main, "__spec__", None), "name", None) == _TALKATIVE:
        main.print = lambda *_, **__: None  # type: ignore[union-attr]
