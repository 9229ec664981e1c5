"""A thread: an object with its states, a table of plug-ins, and what these plug-ins remember.

A thread receives a message (S10), stores what it carries (S11), and for each state that was written (S12) runs the
plug-in of that state (S13). An equal value counts as written, too: otherwise a second `set` would start nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from cepheid.distribution.messages import Message, Stage, Value


@dataclass(frozen=True, slots=True)
class Thread:
    """A thread at one moment. Each message makes another value of it."""

    id: str
    stage: Stage
    plugins: Mapping[str, str]
    """The plug-in table: the plug-in that runs when a state is written, in the order in which they run."""
    memory: Any = None
    """What the plug-ins of its stage remember: the dataclass of that stage."""
    states: Mapping[str, Value] = field(default_factory=dict)
    """The object state table: the last value written to each state."""


Handled: TypeAlias = tuple[Thread, tuple[Message, ...]]
"""A thread after a message, and the messages that it sends."""
Plugin: TypeAlias = Callable[[Thread, Message, int], Handled]
"""A function of the thread, the message and the second in which it is handled."""


def received(thread: Thread, message: Message, now: int, plugins: Mapping[str, Plugin]) -> Handled:
    """Handles a message in the second `now`; `plugins` has the plug-ins by their ids."""
    written = dict(message.states)
    thread = replace(thread, states={**thread.states, **written})
    sent: tuple[Message, ...] = ()
    for state, plugin in thread.plugins.items():
        if state in written:
            thread, more = plugins[plugin](thread, message, now)
            sent += more
    return thread, sent
