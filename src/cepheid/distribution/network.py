"""A network of threads, run message by message.

Between each pair of threads messages arrive in the order in which they were sent. Beyond that, any order can happen:
the next channel is drawn by the seed, so a run can be repeated.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from random import Random

from cepheid.distribution import control, originals, standbys
from cepheid.distribution.aggregates import Partial
from cepheid.distribution.control import Acted, Control
from cepheid.distribution.messages import Kind, Message, Stage
from cepheid.distribution.plugins import PLUGINS
from cepheid.distribution.threads import Thread, received

WORLD = "world"
"""The sender of what comes from outside."""


class Network:
    """Threads, and the messages on their way."""

    def __init__(self, threads: Mapping[str, Thread], *, seed: int = 0) -> None:
        self.threads = dict(threads)
        self.now = 0
        """The second."""
        self.control_messages: list[tuple[str, str, str]] = []
        """Sender, receiver and value of `control` of each, as they were sent."""
        self.arrived: Counter[str] = Counter()
        """How many events each thread was sent in this second."""
        self.last: dict[tuple[str, str], Message] = {}
        """The last message of each sender to each receiver."""
        self._order = Random(seed)  # noqa: S311 no secret
        self._channels: dict[tuple[str, str], deque[Message]] = {}
        self._busy: list[tuple[str, str]] = []

    def send(self, messages: Iterable[Message], sender: str = WORLD) -> None:
        """Puts messages on their way.

        Raises:
            ValueError: a message would not go forward.
        """
        stage = self.threads[sender].stage if sender != WORLD else 0
        for message in messages:
            if message.stage <= stage or message.stage != self.threads[message.to].stage:
                raise ValueError(f"a message of {sender} to {message.to} does not go to a later stage")
            channel = self._channels.setdefault((sender, message.to), deque())
            if not channel:
                self._busy.append((sender, message.to))
            channel.append(message)
            self.last[sender, message.to] = message
            if message.kind is Kind.CONTROL:
                self.control_messages.append((sender, message.to, message.text("control")))
            elif message.kind is Kind.EVENT:
                self.arrived[message.to] += 1

    def run(self) -> None:
        """Delivers messages until none is on its way."""
        while self._busy:
            at = self._order.randrange(len(self._busy))
            sender, to = self._busy[at]
            channel = self._channels[sender, to]
            message = channel.popleft()
            if not channel:
                self._busy[at] = self._busy[-1]
                self._busy.pop()
            self.threads[to], sent = received(self.threads[to], message, self.now, PLUGINS)
            self.send(sent, to)

    def act(self, at: str, action: Callable[[Control], Acted]) -> None:
        """Lets a control thread do something of its own, such as `request` or `release`."""
        thread = self.threads[at]
        memory, sent = action(thread.memory)
        self.threads[at] = replace(thread, memory=memory)
        self.send(sent, at)

    def tick(self) -> None:
        """The next second begins; what control threads saw in the last one may lead to copies and releases."""
        self.now += 1
        self.arrived.clear()
        for at in [thread.id for thread in self.threads.values() if thread.stage is Stage.CONTROL]:
            self.act(at, lambda memory: control.decided(memory, self.now))

    def send_on(self) -> None:
        """What happens each minute: originals and copies send what they have gathered."""
        for thread in [*self.threads.values()]:
            if thread.stage in (Stage.ORIGINAL, Stage.STANDBY):
                send = originals.sent_on if thread.stage is Stage.ORIGINAL else standbys.sent_on
                self.threads[thread.id], sent = send(thread, self.now)
                self.send(sent, thread.id)

    def totals(self) -> dict[str, Partial]:
        """What the services added, by service object."""
        services = [thread for thread in self.threads.values() if thread.stage is Stage.SERVICE]
        return {of: partial for thread in services for of, partial in thread.memory.totals.items()}
