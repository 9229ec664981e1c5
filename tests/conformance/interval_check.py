"""Asks Cepheid the question of a case about intervals or out-of-order arrival, and says what is wrong with the answer.

Matches are those of `detect`; logs are those of the matchers, one event at a time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
from tests.conformance import algebra_case
from tests.conformance.algebra_case import AT, ID
from tests.conformance.check import Failed, Passed, Result, checked_alone, checked_in_groups
from tests.conformance.interval_answers import wrong_fields
from tests.conformance.interval_case import SECOND, question
from tests.conformance.tree_streams import Where, intervals_together, occurrences_together
from tests.intervals.running import ENGINE, SIGNS, batch_of, log_of

from cepheid import Matcher, OccurrencePattern
from cepheid.compile.intervals.compiled import compile_intervals
from cepheid.detect import detect
from cepheid.kernel.consistency_reference import LogEntry
from cepheid.lang.consistency import Consistency, End
from cepheid.lang.occurrences.pattern import Policy
from cepheid.plan.intervals.build import build_interval_plan

Case: TypeAlias = Mapping[str, Any]
Log: TypeAlias = list[list[Any]]
CASES_A_QUERY = 12
Ask: TypeAlias = Callable[[Consistency, Mapping[int, Consistency]], Log]


def is_intervals(path: Path) -> bool:
    """Whether the file has cases about intervals or out-of-order arrival."""
    with path.open(encoding="utf-8") as lines:
        first = json.loads(next(lines, "{}"))
    return "arrival" in first or "pos" in (first.get("pattern") or {})


def read_intervals(path: Path) -> list[Case]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def check_all_intervals(
    cases: Iterable[Case], where: Where, split: list[Exception] | None = None
) -> Iterator[tuple[Case, Result]]:
    """Each case and its result. Logs are compared in process only. On Spark, cases of intervals come before those of
    the event algebra; one query has several cases, and several queries run at a time, as most wait for its scheduler.
    `split` as in `checked_in_groups`.
    """
    if where == "process":
        yield from checked_alone(cases, check_intervals)
        return

    def together(cases: Sequence[Case]) -> list[Result]:
        found = _final_matches(cases, where)
        return [_compared(case, {_name(case): ids}) for case, ids in zip(cases, found, strict=True)]

    kinds: dict[bool, list[Case]] = {False: [], True: []}
    for case in cases:
        kinds["expr" in case].append(case)
    groups = [some[i : i + CASES_A_QUERY] for some in kinds.values() for i in range(0, len(some), CASES_A_QUERY)]
    yield from checked_in_groups(groups, together, partial(check_intervals, where=where), split)


def check_intervals(case: Case, where: Where = "process") -> Result:
    """Whether all required answers are right."""
    try:
        found = answer(case) if where == "process" else {_name(case): _final_matches([case], where)[0]}
    except Exception as error:  # noqa: BLE001 - a crash is a failure of the case, and the run continues
        return Failed(f"{type(error).__name__}: {error}")
    return _compared(case, found)


def _compared(case: Case, found: Mapping[str, Any]) -> Result:
    wrong = [f"{name}: {found[name]}" for name in wrong_fields(case["expected"], found)]
    return Failed("\n".join(wrong)) if wrong else Passed()


def interval_failure(case: Case, got: str) -> str:
    events = ", ".join(
        f"{e['id']}:{e['type']}[{e.get('s', e.get('t'))},{e.get('e', e.get('t'))}]" for e in case["events"]
    )
    return f"FAILED {case['id']}\n  pattern:  {case['text']}\n  events:   {events}\n  got:      {got}\n"


# Answers


def answer(case: Case) -> dict[str, Any]:
    """The required fields of the answer."""
    if "arrival" not in case:
        return _final(case)
    if case["subject"] == "interval":
        log = _engine_log(case)
        return _fields(case, log) | {"conservative": log(Consistency.EARLIEST, {})} | _final(case)
    pattern = algebra_case.pattern(case)
    found = _fields(case, _algebra_log(case, pattern.policy(Policy.UNRESTRICTED)))
    if "realtime_recent_root" in case["expected"]:
        # With a condition, the policy applies at the root, where the facts choose among equally recent occurrences.
        at_root = replace(pattern, expression=pattern.expression.where("TRUE"))
        found["realtime_recent_root"] = _algebra_log(case, at_root.policy(Policy.RECENT))(Consistency.REALTIME, {})
    return found


def _final(case: Case) -> dict[str, Any]:
    """The matches of `detect` on a table of all events that are not late."""
    in_time = _in_time(case)
    if "expr" in case:
        return {_name(case): [ids for _, _, ids in algebra_case.answer(in_time, "unrestricted")]}
    query = question(in_time)
    rows = detect(query.events, query.pattern, time=("start", "end"), columns=["id"]).to_pylist()
    return {_name(case): [[row[p.variable]["id"] for p in query.pattern.positives] for row in rows]}


def _final_matches(cases: Sequence[Case], where: Where) -> list[list[list[str]]]:
    """For each case the matches, found on Spark; all cases are of one kind."""
    in_time = [_in_time(case) for case in cases]
    if "expr" not in cases[0]:
        return intervals_together([question(case) for case in in_time], where)
    found = occurrences_together([(case, ["unrestricted"]) for case in in_time], where)
    return [[ids for _, _, ids in answers["unrestricted"]] for answers in found]


def _in_time(case: Case) -> dict[str, Any]:
    late = case["expected"].get("late", ())
    return dict(case) | {"events": [event for event in case["events"] if event["id"] not in late]}


def _name(case: Case) -> str:
    """The field in which a case has its final matches."""
    return "final" if "arrival" in case else "matches"


def _fields(case: Case, log: Ask) -> dict[str, Any]:
    """The fields of a case, from the logs of the consistencies."""
    switches = {at: Consistency(mode) for at, mode in case["switches"]}
    realtime = log(Consistency.REALTIME, {})
    found = {
        "late": [match[0] for _, _, sign, match in realtime if sign == "late"],
        "final": _net(realtime),
        "conservative_exact": log(Consistency.CONSERVATIVE, {}),
        "realtime": realtime,
    }
    if "switching" in case["expected"]:
        found["switching"] = log(Consistency(case["start_mode"]), switches)
    return found


def _net(log: Log) -> list[list[str]]:
    left: dict[tuple[str, ...], list[str]] = {}
    for _, _, sign, match in log:
        if sign == "+":
            left[tuple(match)] = match
        elif sign == "-":
            del left[tuple(match)]
    return [*left.values()]


# Intervals


def _engine_log(case: Case) -> Ask:
    query = question(case)
    plan = build_interval_plan(query.pattern, query.schema, ENGINE, columns=["id"])
    compiled = compile_intervals(plan, delay=case["K"] * SECOND, lateness=End(case["lateness"]))
    ids = query.events.column("id").to_pylist()
    batch = batch_of(plan, query.events.take([ids.index(id_) for id_ in case["arrival"]]))

    def log(consistency: Consistency, switches: Mapping[int, Consistency]) -> Log:
        entries = log_of(compiled, batch, consistency=consistency, switches=switches)
        return [_shown(one, case["arrival"]) for one in entries]

    return log


def _shown(entry: LogEntry, ids: Sequence[str]) -> list[Any]:
    match = [entry.position] if entry.sign == "late" else entry.match
    assert isinstance(match, Sequence)
    return [entry.when, entry.position, entry.sign, [ids[i] for i in match]]


# The event algebra


def _algebra_log(case: Case, pattern: OccurrencePattern) -> Ask:
    events = algebra_case.table(case)
    ids = events.column(ID).to_pylist()
    arrivals = [events.slice(ids.index(id_), 1) for id_ in case["arrival"]]
    options: dict[str, Any] = {"time": AT, "sequence": ID, "columns": [ID], "lateness": timedelta(seconds=case["K"])}

    def log(consistency: Consistency, switches: Mapping[int, Consistency]) -> Log:
        live = Matcher(pattern, events, consistency=consistency, **options)
        found: Log = []
        for position, event in enumerate(arrivals):
            if position in switches:
                found += _log_entries("switch", position, live.switch(switches[position]))
            found += _log_entries("arrive", position, live.process(event))
        return found + _log_entries("eos", len(arrivals), live.finish())

    return log


def _log_entries(when: str, position: int, rows: pa.Table) -> Log:
    return [[when, position, SIGNS[row["kind"]], _ids(row)] for row in rows.to_pylist()]


def _ids(row: Mapping[str, Any]) -> list[str]:
    return [row["event"][ID]] if row["kind"] == "late" else algebra_case.shown(row)[2]
