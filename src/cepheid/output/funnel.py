"""The funnel: how far the partial matches of a pattern came, and what ended those that became no match."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

BEGIN_WITHOUT = "begin_without"
"""The fate of an event that the first stage would have taken, had an event before it not forbidden that."""


@dataclass(frozen=True)
class Stopped:
    """The number of starts without a match that have the same fate."""

    fate: str
    """"broken", "forbidden", "until", "out of time", "gap", "skipped", "over a limit", "still open" or
    BEGIN_WITHOUT.
    """
    reached: str | None
    """The last stage of the pattern that has taken an event; None: BEGIN_WITHOUT kept all stages from taking one."""
    by: str | None
    """The negated stage or the `begin_without` that forbade, or the stage whose `until` ended; None for other fates."""
    starts: int


@dataclass(frozen=True)
class Funnel:
    """How many events a pattern has read, how many of them started a partial match, how far these came, and what became
    of each start. `starts` is `matched` and the starts of all of `stopped` together.
    """

    events: int
    """Events read, up to `as_of`."""
    null_keys: int
    """Events with a NULL in the key, dropped."""
    null_times: int
    """Events with a key but without a time, dropped."""
    relevant: int
    """Events that can matter to the pattern, by what it asks of each event alone."""
    starts: int
    """Events that a partial match has taken first, and those that `begin_without` kept from being taken."""
    reached: Mapping[str, int]
    """For each stage, the number of starts with a partial match in which the stage has taken an event."""
    matched: int
    """Starts of matches."""
    stopped: tuple[Stopped, ...]
    """The other starts, by the fate of the partial match that came furthest; of equally far ones the last to end. The
    furthest come first.
    """

    @property
    def fates(self) -> dict[str, int]:
        """The number of starts with each fate, the most frequent first; without those that match."""
        counts = Counter[str]()
        for stopped in self.stopped:
            counts[stopped.fate] += stopped.starts
        return dict(counts.most_common())

    @staticmethod
    def from_dict(numbers: Mapping[str, Any]) -> Funnel:
        """The funnel with the numbers of `to_dict`."""
        return Funnel(**{**numbers, "stopped": tuple(Stopped(**one) for one in numbers["stopped"])})

    def to_dict(self) -> dict[str, Any]:
        """All numbers, in values of JSON."""
        return {**asdict(self), "reached": dict(self.reached), "stopped": [asdict(one) for one in self.stopped]}

    def __str__(self) -> str:
        return "\n".join([*self._read_lines(), *self._reached_lines(), *self._stopped_lines()])

    def _read_lines(self) -> Iterable[str]:
        yield _line("events read", self.events)
        if self.null_keys:
            yield _line("without key", self.null_keys)
        if self.null_times:
            yield _line("without time", self.null_times)
        yield _line("that can matter to the pattern", self.relevant)

    def _reached_lines(self) -> Iterable[str]:
        yield _line("starts", self.starts)
        for stage, count in self.reached.items():
            yield _line(f"reached {stage}", count, of=self.starts)
        yield _line("matched", self.matched, of=self.starts)

    def _stopped_lines(self) -> Iterable[str]:
        if self.stopped:
            yield _line("did not match", self.starts - self.matched, of=self.starts)
        for one in self.stopped:
            by = "" if one.by is None else f" by {one.by}"
            after = "" if one.reached is None else f", after {one.reached}"
            yield _line(f"  {one.fate}{by}{after}", one.starts, of=self.starts)


def in_order(stopped: Iterable[Stopped], stages: Iterable[str]) -> tuple[Stopped, ...]:
    """The furthest first, then those with the most starts; `stages` are in the order of the pattern."""
    numbers: dict[str | None, int] = {None: -1} | {stage: number for number, stage in enumerate(stages)}
    return tuple(sorted(stopped, key=lambda one: (-numbers[one.reached], -one.starts, one.fate, one.by or "")))


def total(funnels: Sequence[Funnel]) -> Funnel:
    """The funnel of all events of one pattern, from those of its parts, of which there is at least one."""
    stopped = Counter[tuple[str, str | None, str | None]]()
    for one in (one for funnel in funnels for one in funnel.stopped):
        stopped[one.fate, one.reached, one.by] += one.starts
    numbers = ("events", "null_keys", "null_times", "relevant", "starts", "matched")
    stages = funnels[0].reached
    return Funnel(
        **{name: sum(getattr(funnel, name) for funnel in funnels) for name in numbers},
        reached={stage: sum(funnel.reached[stage] for funnel in funnels) for stage in stages},
        stopped=in_order((Stopped(*stop, starts) for stop, starts in stopped.items()), stages),
    )


def _line(what: str, count: int, *, of: int = 0) -> str:
    share = f"{count / of:8.1%}" if of else ""
    return f"{what:<44}{count:>12,}{share}"
