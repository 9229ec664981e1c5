"""Cases as text, for readers of a failure."""

from __future__ import annotations

from collections.abc import Iterable

from tests.conformance.case import Answer, Case, Event, Fails, Match, PatternFacts, Rejected, StageFacts, Watermark


def pattern_text(pattern: PatternFacts) -> str:
    """The pattern as calls of FlinkCEP's API."""
    skip = pattern.skip
    strategy = "" if skip.strategy == "NO_SKIP" else f"  [{skip.strategy}{f'({skip.stage})' if skip.stage else ''}]"
    return ".".join(map(_stage, pattern.stages)) + strategy


def _stage(stage: StageFacts) -> str:
    name = f"({pattern_text(stage.group)})" if stage.group else repr(stage.name)
    calls = [f"{call.name}({', '.join(map(repr, call.arguments))})" for call in stage.calls]
    return ".".join([f"{stage.contiguity}({name})", *calls])


def items_text(case: Case) -> str:
    """Events as `id@ts field=value …`, watermarks as `|ts`, in the order of their arrival."""
    end = [] if case.advance_to is None else [f"|{case.advance_to}"]
    if case.operator and case.final_watermark:
        end = ["|end"]
    return ", ".join([*map(_item, case.items), *end]) or "none"


def _item(item: Event | Watermark) -> str:
    if isinstance(item, Watermark):
        return f"|{item.ts}"
    return " ".join([f"{item.id}@{item.ts}", *(f"{name}={value}" for name, value in item.fields.items())])


def expected_text(expected: Answer | Rejected | Fails) -> str:
    match expected:
        case Answer(matches):
            return matches_text(matches)
        case Rejected(message):
            return f"rejected: {message}"
        case Fails(message):
            return f"fails: {message}"


def matches_text(matches: Iterable[Match]) -> str:
    """The matches on one line, in the order of their events, as in `{a: 0, b: 1 2}`."""
    return ", ".join(match_text(match) for match in sorted(matches, key=_events)) or "none"


def match_text(match: Match) -> str:
    stages = sorted(match, key=lambda stage: (stage[1], stage[0]))
    return "{" + ", ".join(f"{name}: {' '.join(map(str, ids))}" for name, ids in stages) + "}"


def _events(match: Match) -> list[tuple[int, ...]]:
    return sorted(ids for _, ids in match)
