"""Garbage collection in Spark's workers: PySpark collects after each task, and visits all that a worker has made.

Compiled patterns are most of it: 50,000 objects, which takes 20 milliseconds in each task.
"""

from __future__ import annotations

import gc

_MANY = 10_000
"""So few objects are visited in 2 milliseconds."""


def freeze_what_stays() -> None:
    """Excludes what the worker's earlier tasks have left from later garbage collections.

    It is called when a task begins: PySpark has just collected, so none of it is garbage. Objects that are no longer
    used later are still freed, unless they refer to each other in a cycle: those stay until the worker ends. Compiled
    patterns have few of these.
    """
    if len(gc.get_objects(generation=2)) > _MANY:
        gc.freeze()
