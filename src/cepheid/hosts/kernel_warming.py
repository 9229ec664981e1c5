"""Compiling the kernel while Spark starts, where both are ahead.

It is a process of its own: the workers need the code in the disk cache, not in this process, and a thread that compiles
shares the interpreter's lock and cannot be stopped. `detect` on a DataFrame does not do it: its Spark has started
already, its workers may be on other machines, and until an action runs nothing is to be done.

It needs a core to spare. With two cores and three other loads on them it made no difference beyond the noise (start and
first task with an empty cache, four pairs: 54 to 102 s without, 54 to 114 s with; a thread 61 to 114 s).
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_WARM_UP = "from cepheid.kernel.warm_up import warm_up; warm_up(sets=False)"


@contextmanager
def kernel_warming() -> Iterator[None]:
    """Around the start of a local Spark and the work on it: the kernel is compiled into the disk cache meanwhile.

    Workers that need it sooner wait for it. If it fails nothing is lost: the workers compile it, and say what is wrong.
    """
    command = [sys.executable, "-P", "-c", _WARM_UP]
    warming = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # noqa: S603
    try:
        yield
    finally:
        warming.terminate()  # of no effect where it is done, as it is when workers were
        warming.wait()
