"""A case: a fact about FlinkCEP as typed values, read from a JSON line.

Whatever the line's short form, a stage here is its contiguity and the calls of FlinkCEP's API on it, in order; `within`
of the whole pattern is a call on the last stage, as in FlinkCEP.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

Value: TypeAlias = bool | int | float | str | None
Match: TypeAlias = frozenset[tuple[str, tuple[int, ...]]]
"""Each stage that took events, with their ids in order."""


@dataclass(frozen=True)
class Event:
    id: int
    arrival: int
    """The number of events that came before it."""
    ts: int
    """Milliseconds."""
    fields: Mapping[str, Value]


@dataclass(frozen=True)
class Watermark:
    ts: int


@dataclass(frozen=True)
class Call:
    """A call of FlinkCEP's pattern API, with its name there."""

    name: str
    arguments: tuple[Value, ...] = ()


@dataclass(frozen=True)
class StageFacts:
    contiguity: str
    """begin, next, followedBy, followedByAny, notNext or notFollowedBy."""
    name: str | None
    """None: the stage is a group."""
    group: PatternFacts | None
    calls: tuple[Call, ...]


@dataclass(frozen=True)
class SkipFacts:
    strategy: str
    stage: str | None
    error_on_miss: bool


@dataclass(frozen=True)
class PatternFacts:
    stages: tuple[StageFacts, ...]
    skip: SkipFacts

    @property
    def has_groups(self) -> bool:
        return any(stage.group for stage in self.stages)

    @property
    def stage_names(self) -> list[str]:
        """The names of all stages, including those in groups."""
        inner = [stage.group.stage_names if stage.group else [stage.name] for stage in self.stages]
        return [name for names in inner for name in names if name is not None]


@dataclass(frozen=True)
class Answer:
    """What FlinkCEP emits, in its order; `…_at` has the id of the event that caused each emission, or -1 for time
    alone.
    """

    matches: tuple[Match, ...]
    matches_at: tuple[int, ...]
    timeouts: tuple[tuple[Match, int], ...]
    timeouts_at: tuple[int, ...]
    late: frozenset[int]


@dataclass(frozen=True)
class Rejected:
    """FlinkCEP refuses the pattern with this message."""

    message: str


@dataclass(frozen=True)
class Fails:
    """FlinkCEP fails with this message while it runs."""

    message: str


@dataclass(frozen=True)
class Case:
    name: str
    pattern: PatternFacts
    items: tuple[Event | Watermark, ...]
    expected: Answer | Rejected | Fails
    operator: bool
    """Events go through the event-time operator; otherwise directly into the automaton, in the order of the list."""
    key: str | None
    comparator: str | None
    final_watermark: bool
    advance_to: int | None

    @property
    def events(self) -> list[Event]:
        return [item for item in self.items if isinstance(item, Event)]

    @property
    def watermarks(self) -> list[int]:
        return [item.ts for item in self.items if isinstance(item, Watermark)]


def read_cases(path: Path) -> Iterator[Case]:
    """The cases of a file, one per line."""
    with path.open(encoding="utf-8") as lines:
        yield from (read_case(json.loads(line)) for line in lines if line.strip())


def read_case(line: Mapping[str, Any]) -> Case:
    return Case(
        name=line["name"],
        pattern=_pattern(line["pattern"]),
        items=tuple(_items(line.get("events", []))),
        expected=_expected(line),
        operator=line.get("mode", "nfa") == "operator",
        key=line.get("keyBy"),
        comparator=line.get("comparator"),
        final_watermark=line.get("final_watermark", True),
        advance_to=line.get("advance_to"),
    )


def _items(items: list[Mapping[str, Any]]) -> Iterator[Event | Watermark]:
    arrival = 0
    for item in items:
        if "watermark" in item:
            yield Watermark(item["watermark"])
        else:
            yield Event(item["id"], arrival, item["ts"], {k: v for k, v in item.items() if k not in ("id", "ts")})
            arrival += 1


def _expected(line: Mapping[str, Any]) -> Answer | Rejected | Fails:
    if "rejected" in line:
        return Rejected(line["rejected"]["message"])
    if "error" in line:
        return Fails(line["error"]["message"])
    return Answer(
        matches=tuple(map(_match, line["expected"])),
        matches_at=tuple(line.get("expected_at", ())),
        timeouts=tuple((_match(timeout["match"]), timeout["ts"]) for timeout in line.get("expected_timeouts", ())),
        timeouts_at=tuple(line.get("expected_timeouts_at", ())),
        late=frozenset(line.get("expected_late", ())),
    )


def _match(stages: Mapping[str, list[int]]) -> Match:
    return frozenset((stage, tuple(ids)) for stage, ids in stages.items())


def _pattern(pattern: Mapping[str, Any]) -> PatternFacts:
    last = len(pattern["stages"]) - 1
    whole = _within(pattern)
    stages = [_stage(stage, whole if i == last else ()) for i, stage in enumerate(pattern["stages"])]
    skip = pattern.get("skip", {})
    return PatternFacts(
        stages=tuple(stages),
        skip=SkipFacts(skip.get("strategy", "NO_SKIP"), skip.get("stage"), skip.get("throwOnMiss", False)),
    )


def _within(pattern: Mapping[str, Any]) -> tuple[Call, ...]:
    if "within" not in pattern:
        return ()
    return (Call("within", (pattern["within"], pattern.get("withinType", "FIRST_AND_LAST"))),)


def _stage(stage: Mapping[str, Any], further: tuple[Call, ...]) -> StageFacts:
    return StageFacts(
        contiguity=stage["contiguity"],
        name=stage.get("name"),
        group=_pattern(stage["group"]) if "group" in stage else None,
        calls=(*_calls(stage), *further),
    )


def _calls(stage: Mapping[str, Any]) -> Iterator[Call]:
    """The calls in the order in which they were made: as listed, or else conditions first and windows last."""
    where = stage.get("where", [])
    for condition in [{"where": where}] if isinstance(where, str) else where:
        yield from (Call(name, (text,)) for name, text in condition.items())
    yield from _quantifier(stage.get("quantifier", {}))
    if "until" in stage:
        yield Call("until", (stage["until"],))
    if "within" in stage:
        yield Call("within", (stage["within"], "FIRST_AND_LAST"))
    if "withinPrevious" in stage:
        yield Call("within", (stage["withinPrevious"], "PREVIOUS_AND_CURRENT"))
    yield from (Call(name, tuple(arguments)) for name, *arguments in stage.get("calls", []))


def _quantifier(quantifier: Mapping[str, Any]) -> Iterator[Call]:
    """If there is a window, it is the last argument of the call that makes the loop."""
    window = [quantifier["window"]] if "window" in quantifier else []
    if quantifier.get("oneOrMore"):
        yield Call("oneOrMore", tuple(window))
    if "times" in quantifier:
        yield Call("times", (*quantifier["times"], *window))
    if "timesOrMore" in quantifier:
        yield Call("timesOrMore", (quantifier["timesOrMore"], *window))
    for name in ("consecutive", "allowCombinations", "optional", "greedy"):
        if quantifier.get(name):
            yield Call(name)
