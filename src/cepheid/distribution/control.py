"""A control thread: it chooses the original of an event, watches loads, requests and releases copies, and divides.

Control threads do not know of each other's requests. Each knows how many there are, and what it received and sent.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

from cepheid.allocation.load import smoothed
from cepheid.allocation.thresholds import THRESHOLDS, Thresholds, next_copies
from cepheid.distribution import messages
from cepheid.distribution.dealing import dealt, weights, whole_parts
from cepheid.distribution.lists import ANY, Listed, Lists
from cepheid.distribution.messages import Message, Stage
from cepheid.distribution.parameters import Parameter
from cepheid.distribution.threads import Handled, Thread


@dataclass(frozen=True, slots=True)
class Watch:
    """When copies are made and released: the capacity of a thread in events a second, and the thresholds."""

    capacity: float
    thresholds: Thresholds = THRESHOLDS


class Dealing(NamedTuple):
    """The parts and the credit of each destination."""

    parts: Mapping[str, int]
    credit: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Control:
    """The memory of a control thread."""

    para0: Parameter
    originals: tuple[str, ...]
    controls: int
    """How many control threads there are."""
    lists: Lists
    number: int = 0
    """Its number among the control threads: by it, they begin with different destinations."""
    watch: Watch | None = None
    """None: copies are only made and released from outside, by `request` and `release`."""
    reuse: bool = True
    """A standby of the list may be used for a second original when no other is left."""
    in_use: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The copies of each original that has some, in the order in which they were requested."""
    lacking: Mapping[str, int] = field(default_factory=dict)
    """How many more copies each original needs, for which there are not enough standbys."""
    original: str = ""
    """The original of the event that is being handled."""
    second: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    """How many events each original had in this second."""
    loads: Mapping[str, float] = field(default_factory=dict)
    """The smoothed events a second of each original."""
    dealing: Mapping[str, Dealing] = field(default_factory=dict)
    """How the events of each original that has copies are divided."""


Acted: TypeAlias = tuple[Control, tuple[Message, ...]]
"""A control thread after an action, and the messages that it sends."""


class Administered(NamedTuple):
    """A row of the administration table."""

    id: str
    distributed: bool
    in_use: tuple[str, ...]


class Destination(NamedTuple):
    """A row of a destination list."""

    id: str
    used: bool
    share: bool


def administration_table(control: Control) -> tuple[Administered, ...]:
    return tuple(
        Administered(original, original in control.in_use, control.in_use.get(original, ()))
        for original in control.originals
    )


def destination_list(control: Control, original: str = ANY) -> tuple[Destination, ...]:
    """The list from which this original's copies are taken."""
    used = _used(control, original)
    return tuple(Destination(row.id, row.id in used, row.share) for row in _list_for(control, original))


def _list_for(control: Control, original: str) -> tuple[Listed, ...]:
    return control.lists[original if original in control.lists else ANY]


def _used(control: Control, original: str) -> set[str]:
    """The standbys that are used by the originals that this list serves."""
    served = (original,) if original in control.lists and original != ANY else control.originals
    return {standby for one in served for standby in control.in_use.get(one, ())}


def available(control: Control, original: str, count: int) -> tuple[str, ...]:
    """Up to `count` more standbys for an original: the first unused ones of its list and, if reuse is allowed, those
    that serve other originals.
    """
    mine, used = control.in_use.get(original, ()), _used(control, original)
    others = [row.id for row in _list_for(control, original) if row.id not in mine]
    unused = [standby for standby in others if standby not in used]
    reusable = [standby for standby in others if standby in used] if control.reuse else []
    return (*unused, *reusable)[:count]


def request(control: Control, original: str, standbys: tuple[str, ...], now: int) -> Acted:
    """S32: asks for copies on these standbys. The tables change at once, so the next event may already go to a copy.

    Raises:
        ValueError: the list of this original does not have a standby, or it is a copy of the original already.
    """
    before = control.in_use.get(original, ())
    free = [row.id for row in _list_for(control, original) if row.id not in before]
    if wrong := [standby for standby in standbys if standby not in free]:
        raise ValueError(
            f"{original} cannot be copied to {', '.join(wrong)}: the list has {', '.join(free) or 'no standbys'} left"
        )
    in_use = (*before, *standbys)
    after = _with_copies(control, original, in_use)
    return after, (messages.copy_request(original, standbys, now),)


def release(control: Control, original: str, standbys: tuple[str, ...], now: int) -> Acted:
    """S34: releases these copies. The original gets no message.

    Raises:
        ValueError: one of them is no copy of this original that this control thread requested.
    """
    before = control.in_use.get(original, ())
    if wrong := [standby for standby in standbys if standby not in before]:
        raise ValueError(
            f"{', '.join(wrong)} cannot be released: {original} has {', '.join(before) or 'no copies'} from here"
        )
    kept = tuple(standby for standby in before if standby not in standbys)
    return _with_copies(control, original, kept), tuple(messages.release(one, original, now) for one in standbys)


def _with_copies(control: Control, original: str, in_use: tuple[str, ...]) -> Control:
    copies = {one: ids for one, ids in control.in_use.items() if one != original}
    dealing = {one: parts for one, parts in control.dealing.items() if one != original}
    if in_use:
        rows = [row for row in _list_for(control, original) if row.id in in_use]
        copies[original] = in_use
        dealing[original] = _begun(whole_parts(weights(original, rows, control.controls)), control.number)
    return replace(control, in_use=copies, dealing=dealing)


def _begun(parts: Mapping[str, int], number: int) -> Dealing:
    """As after `number` events, so that not all control threads send the same destination its events at once."""
    credit: Mapping[str, int] = {}
    for _ in range(number % sum(parts.values())):
        _, credit = dealt(credit, parts)
    return Dealing(parts, credit)


def choose_original(thread: Thread, message: Message, now: int) -> Handled:  # noqa: ARG001 a plug-in
    """e_prc1: the original of an event is that of its event time."""
    control: Control = thread.memory
    original = control.para0.id_at(message.time)
    return replace(thread, memory=replace(control, original=original)), ()


def distribute(thread: Thread, message: Message, now: int) -> Handled:
    """plg_1: decides about copies (c_prc1), then sends the event to its original or to one of the copies (c_prc4)."""
    control, sent = decided(thread.memory, now)
    control = replace(control, counts={**control.counts, control.original: control.counts.get(control.original, 0) + 1})
    control, to = destination(control, control.original)
    if to == control.original:
        moved = messages.forwarded(message, to, Stage.ORIGINAL)
    else:
        moved = messages.forwarded(message, to, Stage.STANDBY, usage_key=control.original)
    return replace(thread, memory=control), (*sent, moved)


def destination(control: Control, original: str) -> tuple[Control, str]:
    """The thread that gets the next event of this original."""
    if original not in control.dealing:
        return control, original
    parts, credit = control.dealing[original]
    to, credit = dealt(credit, parts)
    return replace(control, dealing={**control.dealing, original: Dealing(parts, credit)}), to


def decided(control: Control, now: int) -> Acted:
    """c_prc1: at the first event of a new second, judges each second that is over."""
    sent: tuple[Message, ...] = ()
    while control.second < now:
        loads = {
            original: smoothed(control.loads.get(original, 0.0), control.counts.get(original, 0))
            for original in {**control.loads, **control.counts}
        }
        control = replace(control, second=control.second + 1, counts={}, loads=loads)
        if control.watch is not None:
            for original, load in loads.items():
                control, more = _adapted(control, control.watch, original, load, now)
                sent += more
    return control, sent


def _adapted(control: Control, watch: Watch, original: str, load: float, now: int) -> Acted:
    """Requests or releases copies of one original. Control threads are taken to have equal loads."""
    copies = len(control.in_use.get(original, ()))
    wanted = next_copies(
        control.controls * load, copies, capacity=watch.capacity, most=sys.maxsize, thresholds=watch.thresholds
    )
    standbys = available(control, original, wanted - copies) if wanted > copies else ()
    control = _lacking(control, original, max(0, wanted - copies - len(standbys)))
    if wanted < copies:
        return release(control, original, control.in_use[original][wanted:], now)
    return request(control, original, standbys, now) if standbys else (control, ())


def _lacking(control: Control, original: str, count: int) -> Control:
    if count == control.lacking.get(original, 0):
        return control
    others = {one: number for one, number in control.lacking.items() if one != original}
    return replace(control, lacking={**others, original: count} if count else others)
