"""Asks a host the question of a case, and compares its answer with FlinkCEP's."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from tests.conformance.case import Answer, Case, Fails, Match, Rejected
from tests.conformance.compare import Found, difference
from tests.conformance.durable import STORES, DurableHost
from tests.conformance.reference import TIME_ALONE, reference
from tests.conformance.shown import matches_text
from tests.conformance.streaming import streamed_alone, streamed_together
from tests.conformance.together import ENDS, grouped, joined
from tests.conformance.translate import EPOCH, TIME, Question, Unsupported, translate

from cepheid import CepheidWarning, ConditionError, Matcher, Pattern, PatternError, detect
from cepheid.errors import SkipError

ACCEPTED: Mapping[str, str] = {
    "Optional already applied!": "times(0, n) and optional() say the same, in any order",
    "Duplicate pattern name: $endState$.": "no name is kept for ourselves",
    "Optional pattern cannot be preceded by greedy pattern": "it means what times(0, n) there does",
}
"""The start of FlinkCEP's message → why Cepheid accepts what FlinkCEP refuses with it."""
NO_SUCH_STAGE = "The pattern name specified in AfterMatchSkipStrategy can not be found"
"""FlinkCEP's message if the stage to skip to does not exist, and also if it is in a group; Cepheid accepts the
latter.
"""

C = TypeVar("C")
Host: TypeAlias = Callable[[Question], Found]
QUERIES_AT_A_TIME = 4
RAISED_ON_SPARK = "USER_RAISED_EXCEPTION"
"""Part of Spark's exception if a worker has raised an error with a message."""
OUTPUTS = ("matches", "timeouts", "late")


@dataclass(frozen=True)
class Passed:
    pass


@dataclass(frozen=True)
class Failed:
    got: str


@dataclass(frozen=True)
class NotSupported:
    """The case uses a feature that Cepheid does not have yet."""

    feature: str


Result: TypeAlias = Passed | Failed | NotSupported


def in_process(question: Question) -> Found:
    """Through a matcher, in the case's own steps: what it emits at each step, including late events."""
    _check_order(question)
    # Without an operator, events count in the order of arrival; with one, they wait for a watermark.
    matcher = Matcher(
        question.pattern,
        question.events.schema,
        key=question.key or (),
        time=TIME,
        sequence=question.sequence,
        columns=["id"],
        outputs=OUTPUTS,
        lateness=None if question.operator else "0 seconds",
    )
    found = []
    for item in question.items:
        if item.event is None:
            rows = matcher.advance_time(EPOCH + timedelta(milliseconds=item.ts))
        else:
            rows = matcher.process(question.events.slice(item.event, 1))
        at = TIME_ALONE if item.event is None else question.id_of(item.event)
        found += [(row, at) for row in rows.to_pylist()]
    return _found(found, with_events=not question.operator)


def spark_batch(question: Question) -> Found:
    """Through `detect` on the events that are not late, since finite input has no late events."""
    _check_order(question)
    on_time = pc.invert(pc.is_in(question.events.column("id"), pa.array([*question.late], pa.int64())))
    rows = _on_spark(
        question.events.filter(on_time), question.pattern, question.key or (), question.sequence, question.as_of
    )
    return replace(_of_spark(rows), late=None)


def spark_batch_together(questions: Sequence[Question]) -> list[Found]:
    """The same for several questions in one query."""
    query = joined(questions)
    rows = _on_spark(query.events, query.patterns, query.key, query.sequence, ENDS)
    return [replace(_of_spark(rows), late=None) for rows in query.rows_of_each(rows)]


def _on_spark(
    events: pa.Table,
    patterns: Pattern | Mapping[str, Pattern],
    key: str | Sequence[str],
    sequence: str,
    as_of: datetime,
) -> list[dict[str, Any]]:
    from cepheid.hosts.spark.session import local_session

    # In one chunk: PySpark 4.3 loses the rows after an empty chunk.
    frame = local_session("cepheid conformance", time_zone="UTC").createDataFrame(events.combine_chunks())
    return (
        detect(frame, patterns, key=key, time=TIME, sequence=sequence, columns=["id"], outputs=OUTPUTS, as_of=as_of)
        .toArrow()
        .to_pylist()
    )


def spark_stream(question: Question) -> Found:
    """Through `detect` on a stream, in micro-batches."""
    _check_order(question)
    return _of_spark(streamed_alone(question) if question.operator else streamed_together([question])[0])


def spark_stream_together(questions: Sequence[Question]) -> list[Found]:
    """The same for several questions in one query."""
    return [_of_spark(rows) for rows in streamed_together(questions)]


def _of_spark(rows: Sequence[Mapping[str, Any]]) -> Found:
    return _found([(row, TIME_ALONE) for row in rows], with_events=False)


def durable(host: DurableHost, question: Question) -> Found:
    """Through a durable host, in the case's own steps."""
    _check_order(question)
    return _found([(row, TIME_ALONE) for row in host.rows(question)], with_events=False)


HOSTS: Mapping[str, Host] = {
    "in_process": in_process,
    "spark_batch": spark_batch,
    "spark_stream": spark_stream,
    "reference": reference,
    **{kind: partial(durable, DurableHost(kind)) for kind in STORES},
}
TOGETHER: Mapping[Host, Callable[[Sequence[Question]], list[Found]]] = {
    spark_batch: spark_batch_together,
    spark_stream: spark_stream_together,
}
"""Hosts that answer many questions in one query."""


def _found(rows: Sequence[tuple[Mapping[str, Any], int]], *, with_events: bool) -> Found:
    """The rows of `detect`, each with the event that caused it, as `Found`; these events are included if
    `with_events`.
    """
    matches = [(_match(row), at) for row, at in rows if row["kind"] == "match"]
    timeouts = [(_match(row), row["detected_at"], at) for row, at in rows if row["kind"] == "timeout"]
    return Found(
        matches=tuple(match for match, _ in matches),
        matches_at=tuple(at for _, at in matches) if with_events else None,
        timeouts=tuple((match, (time - EPOCH) // timedelta(milliseconds=1)) for match, time, _ in timeouts),
        timeouts_at=tuple(at for *_, at in timeouts) if with_events else None,
        late=frozenset(row["event"]["id"] for row, _ in rows if row["kind"] == "late"),
    )


def check_all(cases: Iterable[Case], host: Host, split: list[Exception] | None = None) -> Iterator[tuple[Case, Result]]:
    """Each case and its result. On Spark the order differs, and several queries run at a time, as most wait for its
    scheduler. `split` as in `checked_in_groups`.
    """
    if host not in TOGETHER:
        yield from ((case, check(case, host)) for case in cases)
        return

    def together(cases: Sequence[Case]) -> list[Result]:
        found = TOGETHER[host]([translate(case) for case in cases])
        return [_compared(case, answer) for case, answer in zip(cases, found, strict=True)]

    yield from checked_in_groups(_fitting(cases), together, partial(check, host=host), split)


def checked_alone(cases: Iterable[C], alone: Callable[[C], Result]) -> Iterator[tuple[C, Result]]:
    """Each case and its result, one after the other."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CepheidWarning)  # some cases grow without bound or are expensive on purpose
        yield from ((case, alone(case)) for case in cases)


def checked_in_groups(
    groups: Iterable[Sequence[C]],
    together: Callable[[Sequence[C]], Sequence[Result]],
    alone: Callable[[C], Result],
    split: list[Exception] | None = None,
) -> Iterator[tuple[C, Result]]:
    """Each case and its result: one query per group, several queries at a time. If a query fails, the cases of its
    group are asked one by one, and the error is appended to `split`.
    """

    def checked(cases: Sequence[C]) -> list[tuple[C, Result]]:
        if len(cases) > 1:
            try:
                return [*zip(cases, together(cases), strict=True)]
            except Exception as error:  # noqa: BLE001 - the case that fails alone reports the error, too
                if split is not None:
                    split.append(error)
        return [(case, alone(case)) for case in cases]

    with warnings.catch_warnings(), ThreadPoolExecutor(QUERIES_AT_A_TIME) as pool:
        warnings.simplefilter(
            "ignore", CepheidWarning
        )  # as above; and most cases have no key, so that Spark warns of a single partition
        for results in pool.map(checked, groups):
            yield from results


def check(case: Case, host: Host) -> Result:
    """Whether the host answers as the case expects."""
    try:
        found = host(translate(case))
    except Unsupported as gap:
        return NotSupported(gap.feature)
    except PatternError as error:
        return Passed() if isinstance(case.expected, Rejected) else Failed(f"PatternError: {error}")
    except Exception as error:  # noqa: BLE001 - a crash is a failure of the case, and the run continues
        expected_error = isinstance(error, ConditionError | SkipError) or RAISED_ON_SPARK in str(error)
        return (
            Passed()
            if expected_error and isinstance(case.expected, Fails)
            else Failed(f"{type(error).__name__}: {error}")
        )
    return _compared(case, found)


def _fitting(cases: Iterable[Case]) -> Iterator[list[Case]]:
    """The cases in groups that one query can answer; cases without an answer come alone."""
    answered, questions = list[Case](), list[Question]()
    for case in cases:
        try:
            question = translate(case)
            _check_order(question)
        except (Unsupported, PatternError):
            yield [case]
            continue
        if isinstance(case.expected, Answer):
            answered.append(case)
            questions.append(question)
        else:
            yield [case]
    for numbers in grouped(questions):
        yield [answered[number] for number in numbers]


def _check_order(question: Question) -> None:
    times = [item.ts for item in question.items if item.event is not None]
    if not question.operator and times != sorted(times):
        raise Unsupported("events out of the order of time, without an operator")


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


def _match(row: Mapping[str, Any]) -> Match:
    return frozenset((name, tuple(event["id"] for event in events)) for name, events in row["stages"] if events)
