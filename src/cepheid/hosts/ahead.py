"""One piece ahead: the next is made in a thread of its own while one is worked on."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def ahead(items: Iterator[T]) -> Iterator[T]:
    """The items, in their order. Arrow, DuckDB, NumPy and the kernel let go of the interpreter, so both go on at once.

    Raises what making an item raises, when its turn comes.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="cepheid-ahead") as thread:
        coming = thread.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = thread.submit(next, items, None)
            yield item
