"""One piece ahead: the next is made in a thread of its own while one is worked on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

T = TypeVar("T")


def ahead(items: Iterator[T]) -> Iterator[T]:
    """The items, in their order. Arrow, DuckDB, NumPy and the kernel let go of the interpreter, so both go on at once.

    Raises what making an item raises, when its turn comes.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="cepheid-ahead") as thread:
        coming = _begun(items, thread)
        while (item := coming()) is not None:
            coming = _begun(items, thread)
            yield item


def _begun(items: Iterator[T], thread: ThreadPoolExecutor) -> Callable[[], T | None]:
    """The next item, or None: when it is called for."""
    try:
        return thread.submit(next, items, None).result
    except RuntimeError:  # the main thread has ended, and nothing new is begun beside those that have not
        return partial(next, items, None)
