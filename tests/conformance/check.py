"""Asks a host what a case asks, and says whether its answer is FlinkCEP's."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import pyarrow as pa
from tests.conformance.case import Answer, Case, Fails, Match, Rejected
from tests.conformance.compare import difference
from tests.conformance.shown import matches_text
from tests.conformance.translate import TIME, Question, Unsupported, translate

from cepheid import CepheidWarning, ConditionError, PatternError, detect

ACCEPTED: Mapping[str, str] = {
    "Optional already applied!": "the order and number of calls on a stage do not matter",
    "Duplicate pattern name: $endState$.": "no name is kept for ourselves",
}
"""Start of FlinkCEP's message → why Cepheid takes what FlinkCEP refuses with it."""

Host: TypeAlias = Callable[[Question], pa.Table]
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


def in_process(question: Question) -> pa.Table:
    return _detect(question.events, question)


def spark_batch(question: Question) -> pa.Table:
    from cepheid.hosts.spark_session import local_session

    frame = local_session("cepheid conformance", time_zone="UTC").createDataFrame(question.events)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CepheidWarning)  # most cases have no key, and so one partition
        return _detect(frame, question).toArrow()


HOSTS: Mapping[str, Host] = {"in_process": in_process, "spark_batch": spark_batch}


def _detect(events: Events, question: Question) -> Events:
    key = question.key or ()
    as_of = question.as_of
    return detect(events, question.pattern, key=key, time=TIME, sequence="id", columns=["id"], as_of=as_of)


def check(case: Case, host: Host) -> Result:
    """Whether the host answers as the case says."""
    try:
        got = [frozenset(_stages(case, row)) for row in host(translate(case)).to_pylist()]
    except Unsupported as gap:
        return NotThere(gap.feature)
    except PatternError as error:
        return Passed() if isinstance(case.expected, Rejected) else Failed(f"PatternError: {error}")
    except Exception as error:  # noqa: BLE001 - a crash is a failure of the case, and the run goes on
        meant = isinstance(case.expected, Fails) and isinstance(error, ConditionError)
        return Passed() if meant else Failed(f"{type(error).__name__}: {error}")
    return _compared(case, got)


def _compared(case: Case, got: list[Match]) -> Result:
    match case.expected:
        case Answer(matches):
            different = difference(matches, got, as_sets=case.pattern.has_groups)
            return Passed() if different is None else Failed(f"{matches_text(got)}\n{different}")
        case Rejected(message):
            accepted = any(message.startswith(start) for start in ACCEPTED)
            return Passed() if accepted else Failed(f"accepted, with {matches_text(got)}")
        case Fails():
            return Failed(f"no failure, but {matches_text(got)}")


def _stages(case: Case, row: Mapping[str, Any]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """What the stages took: a loop has a list of events, another stage an event or, left out, None."""
    for stage in case.pattern.stages:
        assert stage.name is not None, "groups are not translated"
        value = row[stage.name]
        events = value if isinstance(value, list) else [value] if value else []
        if events:
            yield stage.name, tuple(event["id"] for event in events)
