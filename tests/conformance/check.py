"""Asks a host what a case asks, and says whether its answer is FlinkCEP's."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import pyarrow as pa
from tests.conformance.case import Answer, Case, Fails, Rejected
from tests.conformance.compare import Found, difference
from tests.conformance.reference import reference
from tests.conformance.shown import matches_text
from tests.conformance.translate import TIME, Question, Unsupported, translate

from cepheid import CepheidWarning, ConditionError, PatternError, detect
from cepheid.errors import SkipError

ACCEPTED: Mapping[str, str] = {
    "Optional already applied!": "the order and number of calls on a stage do not matter",
    "Combinations already applied!": "the order and number of calls on a stage do not matter",
    "Duplicate pattern name: $endState$.": "no name is kept for ourselves",
    "Optional pattern cannot be preceded by greedy pattern": "it means what times(0, n) there does",
}
"""Start of FlinkCEP's message → why Cepheid takes what FlinkCEP refuses with it."""
NO_SUCH_STAGE = "The pattern name specified in AfterMatchSkipStrategy can not be found"
"""FlinkCEP's message where the stage to skip to is in a group, too; Cepheid skips to it."""

Host: TypeAlias = Callable[[Question], Found]
Events = TypeVar("Events")


@dataclass(frozen=True)
class Passed:
    pass


@dataclass(frozen=True)
class Failed:
    got: str


@dataclass(frozen=True)
class NotThere:
    """The case uses what Cepheid has not yet."""

    feature: str


Result: TypeAlias = Passed | Failed | NotThere


def in_process(question: Question) -> Found:
    return _found(question, _detect(_events(question), question))


def spark_batch(question: Question) -> Found:
    from cepheid.hosts.spark_session import local_session

    frame = local_session("cepheid conformance", time_zone="UTC").createDataFrame(_events(question))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CepheidWarning)  # most cases have no key, and so one partition
        return _found(question, _detect(frame, question).toArrow())


HOSTS: Mapping[str, Host] = {"in_process": in_process, "spark_batch": spark_batch, "reference": reference}


def _events(question: Question) -> pa.Table:
    """What an operator would let through."""
    times = [step.ts for step in question.steps if step.event is not None]
    if question.key is None and times != sorted(times):
        raise Unsupported("events out of the order of time, without an operator")
    return question.events.filter(pa.array([i not in question.late for i in range(len(question.events))], pa.bool_()))


def _detect(events: Events, question: Question) -> Events:
    return detect(
        events,
        question.pattern,
        key=question.key or (),
        time=TIME,
        sequence=question.sequence,
        columns=["id"],
        as_of=question.as_of,
    )


def _found(question: Question, rows: pa.Table) -> Found:
    names = [leaf.name for leaf in question.pattern.leaves if not leaf.contiguity.negated]
    return Found(tuple(frozenset(_stages(names, row)) for row in rows.to_pylist()))


def check(case: Case, host: Host) -> Result:
    """Whether the host answers as the case says."""
    try:
        found = host(translate(case))
    except Unsupported as gap:
        return NotThere(gap.feature)
    except PatternError as error:
        return Passed() if isinstance(case.expected, Rejected) else Failed(f"PatternError: {error}")
    except Exception as error:  # noqa: BLE001 - a crash is a failure of the case, and the run goes on
        meant = isinstance(case.expected, Fails) and isinstance(error, ConditionError | SkipError)
        return Passed() if meant else Failed(f"{type(error).__name__}: {error}")
    return _compared(case, found)


def _compared(case: Case, found: Found) -> Result:
    got = matches_text(found.matches)
    match case.expected:
        case Answer() as expected:
            different = difference(expected, found, as_sets=case.pattern.has_groups)
            return Passed() if different is None else Failed(f"{got}\n{different}")
        case Rejected(message):
            return Passed() if _may_accept(case, message) else Failed(f"accepted, with {got}")
        case Fails():
            return Failed(f"no failure, but {got}")


def _may_accept(case: Case, message: str) -> bool:
    if message.startswith(NO_SUCH_STAGE):
        return case.pattern.skip.stage in case.pattern.stage_names
    return any(message.startswith(start) for start in ACCEPTED)


def _stages(names: Sequence[str], row: Mapping[str, Any]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """What the stages took: a loop has a list of events, another stage an event or, left out, None."""
    for name in names:
        value = row[name]
        events = value if isinstance(value, list) else [value] if value else []
        if events:
            yield name, tuple(event["id"] for event in events)
