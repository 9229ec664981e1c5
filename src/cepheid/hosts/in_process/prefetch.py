"""One piece ahead: a thread prepares the next piece while the caller works on this one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

T = TypeVar("T")


def prefetched(items: Iterator[T]) -> Iterator[T]:
    """The items, in their order. Arrow, DuckDB, NumPy and the kernel release the interpreter, so both run at once.

    An error in preparing an item is raised when its turn comes.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="cepheid-ahead") as thread:
        coming = _begun(items, thread)
        while (item := coming()) is not None:
            coming = _begun(items, thread)
            yield item


def _begun(items: Iterator[T], thread: ThreadPoolExecutor) -> Callable[[], T | None]:
    """Starts preparing the next item. Returns a function that waits for it and returns it, or None after the last."""
    try:
        return thread.submit(next, items, None).result
    except RuntimeError:  # the main thread has ended, and then no new threads may start
        return partial(next, items, None)
