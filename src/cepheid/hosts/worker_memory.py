"""A bound on the memory of a worker process, and what to say where memory does not suffice."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cepheid.errors import LimitExceeded
from cepheid.requests.request import MEMORY_CAN_BE_BOUND


def bound_memory(most: int | None) -> None:
    """Lets this process allocate so many bytes more than it has now; None: without a bound. Where they do not suffice,
    an allocation raises MemoryError. Events in mapped files do not count.
    """
    if not MEMORY_CAN_BE_BOUND:
        return
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    soft = hard if most is None else _allocated() + most
    if hard != resource.RLIM_INFINITY:
        soft = min(soft, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


_NO_MEMORY = (
    "this process cannot allocate the memory for what is found. Choose fewer columns with columns=[…], a shorter "
    "within or a stricter condition, a skip strategy such as Skip.past_last_event(), or limits=Limits(…)"
)


@contextmanager
def memory_as_limit() -> Iterator[None]:
    """In the block, an allocation that fails raises LimitExceeded, which says how to need less memory."""
    try:
        yield
    except MemoryError as error:
        raise LimitExceeded(_NO_MEMORY) from error


def exceeded(most: int | None) -> str:
    """What to say when an allocation has failed in a worker process."""
    if most is None:
        return "a worker process cannot allocate more memory: use fewer workers, or limits=Limits(…)"
    return (
        f"a worker process needs more than {most:,} bytes (worker_memory). Allow more, use a shorter window or a "
        "stricter condition, or limits=Limits(…)"
    )


def _allocated() -> int:
    """The bytes that count for the limit: private memory that may be written, used or not."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("Linux states VmData")
