"""Ends the kernels of a thread early, which another thread asks for: Ctrl-C reaches the main thread alone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, local


class Stopped(Exception):
    """The kernel was asked to end. It cannot be used afterwards."""


_asked = local()


@contextmanager
def stopping_with(event: Event) -> Iterator[None]:
    """Within the block, the kernels of this thread raise Stopped soon after the event is set."""
    _asked.event = event
    try:
        yield
    finally:
        del _asked.event


def stop_if_asked() -> None:
    """Called whenever the compiled code of a kernel returns.

    Raises:
        Stopped: the kernel is to end.
    """
    event: Event | None = getattr(_asked, "event", None)
    if event is not None and event.is_set():
        raise Stopped
