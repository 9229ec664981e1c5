"""All orders in which messages can arrive: every interleaving of what control threads do with one standby.

A copy takes two hops (to the original, then to the standby), an event to a copy and a release one. So both may overtake
it. Each channel between two threads keeps its order, which is needed: without it an event can wait for ever.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple, TypeAlias

from cepheid.distribution import control, messages
from cepheid.distribution.example import PARA0, PARA1, SERVICES
from cepheid.distribution.lists import ANY, Listed
from cepheid.distribution.messages import Message, Stage
from cepheid.distribution.plugins import PLUGINS
from cepheid.distribution.setup import set_up
from cepheid.distribution.standbys import Standby
from cepheid.distribution.threads import Thread, received

_ORIGINAL, _STANDBY, _CAR = "d31", "s001", messages.event("s001", car="in11", time=0.0, speed=50.0)


class Step(Enum):
    """What a control thread does next."""

    REQUEST = "req"
    EVENT = "ev"
    RELEASE = "fl"


Script: TypeAlias = Sequence[Step]
"""What one control thread does, in order."""


class End(NamedTuple):
    """How it ended: events measured, events still waiting, references, and whether parameters remained."""

    measured: int
    waiting: int
    references: int
    parameters: bool


@dataclass(frozen=True)
class Explored:
    """How many states were reached, how it can end, and the lowest count of references on the way."""

    states: int
    ends: frozenset[End]
    lowest: int


@dataclass(frozen=True, slots=True)
class _World:
    done: tuple[int, ...]
    """How many steps of its script each control thread has done."""
    threads: Mapping[str, Thread]
    channels: Mapping[tuple[str, str], tuple[Message, ...]]

    def seen(self) -> tuple[object, ...]:
        """Equal for worlds that are alike. Where measured events were added up, makes no difference."""
        standby: Standby = self.threads[_STANDBY].memory
        tables = (frozenset(table.items()) for table in (standby.counts, standby.parameters, standby.waiting))
        return (self.done, frozenset(self.channels.items()), *tables, self.end().measured)

    def end(self) -> End:
        standby: Standby = self.threads[_STANDBY].memory
        services = [thread.memory.totals for thread in self.threads.values() if thread.stage is Stage.SERVICE]
        return End(
            sum(partial.number for table in [*standby.gathered.values(), *services] for partial in table.values()),
            len(standby.waiting.get(_ORIGINAL, ())),
            standby.counts.get(_ORIGINAL, 0),
            _ORIGINAL in standby.parameters,
        )


def explored(scripts: Sequence[Script], *, fifo: bool = True) -> Explored:
    """Follows every interleaving. `fifo=False`: messages between two threads may also overtake each other."""
    start = _start(len(scripts))
    seen, ahead, ends = {start.seen()}, [start], set[End]()
    lowest = 0
    while ahead:
        world = ahead.pop()
        lowest = min(lowest, world.end().references)
        after = [*_acted(world, scripts), *_delivered(world, fifo=fifo)]
        if not after:
            ends.add(world.end())
        for one in after:
            if (mark := one.seen()) not in seen:
                seen.add(mark)
                ahead.append(one)
    return Explored(len(seen), frozenset(ends), lowest)


def _start(controls: int) -> _World:
    lists = {f"p{21 + number}": {ANY: (Listed(_STANDBY, controls),)} for number in range(controls)}
    parameters = {_ORIGINAL: PARA1}
    threads = set_up(inputs={}, lists=lists, para0=PARA0, parameters=parameters, standbys=[_STANDBY], services=SERVICES)
    return _World((0,) * controls, threads, {})


def _acted(world: _World, scripts: Sequence[Script]) -> Iterator[_World]:
    """The worlds after one control thread does its next step."""
    for number, script in enumerate(scripts):
        if (done := world.done[number]) < len(script):
            thread = world.threads[f"p{21 + number}"]
            memory, sent = _step(thread.memory, script[done])
            threads = {**world.threads, thread.id: replace(thread, memory=memory)}
            steps = (*world.done[:number], done + 1, *world.done[number + 1 :])
            yield _sent(_World(steps, threads, world.channels), thread.id, sent)


def _step(memory: control.Control, step: Step) -> control.Acted:
    match step:
        case Step.REQUEST:
            return control.request(memory, _ORIGINAL, (_STANDBY,), 0)
        case Step.RELEASE:
            return control.release(memory, _ORIGINAL, (_STANDBY,), 0)
        case Step.EVENT:
            return memory, (messages.forwarded(_CAR, _STANDBY, Stage.STANDBY, usage_key=_ORIGINAL),)


def _delivered(world: _World, *, fifo: bool) -> Iterator[_World]:
    """The worlds after one message arrives."""
    for (sender, to), channel in world.channels.items():
        for at, message in enumerate(channel[:1] if fifo else channel):
            rest = (*channel[:at], *channel[at + 1 :])
            others = {pair: waiting for pair, waiting in world.channels.items() if pair != (sender, to)}
            thread, sent = received(world.threads[to], message, 0, PLUGINS)
            channels = {**others, (sender, to): rest} if rest else others
            yield _sent(_World(world.done, {**world.threads, to: thread}, channels), to, sent)


def _sent(world: _World, sender: str, sent: Sequence[Message]) -> _World:
    """With messages on their way. What goes to a service arrives at once, as nothing depends on when it does."""
    threads, channels = dict(world.threads), dict(world.channels)
    for message in sent:
        if message.stage is Stage.SERVICE:
            threads[message.to], _ = received(threads[message.to], message, 0, PLUGINS)
        else:
            channels[sender, message.to] = (*channels.get((sender, message.to), ()), message)
    return _World(world.done, threads, channels)
