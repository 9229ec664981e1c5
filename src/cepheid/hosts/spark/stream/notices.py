"""PySpark's notices on standard error, which would drown a user's own lines."""

from __future__ import annotations

import sys

_TALKATIVE = "pyspark.sql.streaming.transform_with_state_driver_worker"


def without_notices() -> None:
    """In the process that PySpark starts once a query to look at its state, what it does is not printed step by step.
    It reports errors in another way. Its first line comes before anything of ours is imported, and stays.
    """
    main = sys.modules.get("__main__")
    if getattr(getattr(main, "__spec__", None), "name", None) == _TALKATIVE:
        main.print = lambda *_, **__: None  # type: ignore[union-attr]
