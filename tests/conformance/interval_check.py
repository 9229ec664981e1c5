"""Asks Cepheid what a case about intervals or about out-of-order arrival asks, and says what is wrong with its answer.

Matches of intervals are those of `detect`; logs are those of the interval matcher, an event at a time. The
event algebra has no matcher for events out of order: its logs are those of the definition.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from tests.conformance import algebra_case
from tests.conformance.algebra_case import AT, ID
from tests.conformance.check import QUERIES_AT_A_TIME, Failed, Passed, Result
from tests.conformance.interval_answers import wrong_fields
from tests.conformance.interval_case import SECOND, question
from tests.conformance.tree_streams import Where, intervals_streamed, occurrences_streamed
from tests.intervals.running import ENGINE, batch_of, log_of

from cepheid import CepheidWarning
from cepheid.compile.interval import compile_intervals
from cepheid.detect import detect, request_of
from cepheid.hosts.algebra_in_process import occurrence_plans
from cepheid.kernel.algebra_occurrence import Derivation, Member
from cepheid.kernel.algebra_reference import reference_occurrences
from cepheid.kernel.consistency_reference import ALWAYS, NEVER, Arrival, Life, Told, told
from cepheid.kernel.python_events import script_values
from cepheid.kernel.reference import Event
from cepheid.lang.algebra import Policy
from cepheid.lang.interval_values import Consistency, End
from cepheid.plan.algebra import Kind
from cepheid.plan.interval_build import build_interval_plan

Case: TypeAlias = Mapping[str, Any]
Log: TypeAlias = list[list[Any]]
Ask: TypeAlias = Callable[[Consistency, Mapping[int, Consistency]], Log]


def is_intervals(path: Path) -> bool:
    """Whether the file has cases about intervals or arrival."""
    with path.open(encoding="utf-8") as lines:
        first = json.loads(next(lines, "{}"))
    return "arrival" in first or "pos" in (first.get("pattern") or {})


def read_intervals(path: Path) -> list[Case]:
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines if line.strip()]


def check_all_intervals(cases: Iterable[Case], where: Where) -> Iterator[tuple[Case, Result]]:
    """Each case and its result; logs are there in process only, on Spark their final matches. There several are asked
    at a time, as most wait for its scheduler.
    """
    with warnings.catch_warnings(), ThreadPoolExecutor(1 if where == "process" else QUERIES_AT_A_TIME) as pool:
        warnings.simplefilter("ignore", CepheidWarning)  # there is no key, so on Spark one partition
        known = list(cases)
        yield from zip(known, pool.map(partial(check_intervals, where=where), known), strict=True)


def check_intervals(case: Case, where: Where = "process") -> Result:
    """Whether all required answers are right."""
    try:
        found = answer(case) if where == "process" else _final(case, where)
    except Exception as error:  # noqa: BLE001 - a crash is a failure of the case, and the run goes on
        return Failed(f"{type(error).__name__}: {error}")
    wrong = [f"{name}: {found[name]}" for name in wrong_fields(case["expected"], found)]
    return Failed("\n".join(wrong)) if wrong else Passed()


def interval_failure(case: Case, got: str) -> str:
    events = ", ".join(
        f"{e['id']}:{e['type']}[{e.get('s', e.get('t'))},{e.get('e', e.get('t'))}]" for e in case["events"]
    )
    return f"FAILED {case['id']}\n  pattern:  {case['text']}\n  events:   {events}\n  got:      {got}\n"


# Answers


def answer(case: Case) -> dict[str, Any]:
    """The required fields."""
    if "arrival" not in case:
        return _final(case)
    if case["subject"] == "interval":
        return _fields(case, _engine_log(case)) | _final(case)
    found = _fields(case, _algebra_log(case, Policy.UNRESTRICTED))
    if "realtime_recent_root" in case["expected"]:
        found["realtime_recent_root"] = _algebra_log(case, Policy.RECENT)(Consistency.REALTIME, {})
    return found


def _final(case: Case, where: Where = "process") -> dict[str, Any]:
    """The matches of all events that are not late, in a table."""
    name = "matches" if "arrival" not in case else "final"
    events = [event for event in case["events"] if event["id"] not in case["expected"].get("late", ())]
    if "expr" in case:
        in_time = dict(case) | {"events": events}
        if where == "stream":
            found = occurrences_streamed(in_time, ["unrestricted"])["unrestricted"]
        else:
            found = algebra_case.answer(in_time, "unrestricted", on_spark=where == "spark")
        return {name: [ids for _, _, ids in found]}
    asked = question(dict(case) | {"events": events})
    if where == "stream":
        return {name: intervals_streamed(asked)}
    given: Any = asked.events
    if where == "spark":
        from cepheid.hosts.spark_session import local_session

        given = local_session("cepheid conformance", time_zone="UTC").createDataFrame(given)
    matches = detect(given, asked.pattern, start="start", end="end", columns=["id"])
    rows = (matches.toArrow() if where == "spark" else matches).to_pylist()
    return {name: [[row[p.variable]["id"] for p in asked.pattern.positives] for row in rows]}


def _fields(case: Case, log: Ask) -> dict[str, Any]:
    """What a case asks for, from the logs of the modes."""
    switches = {at: Consistency(mode) for at, mode in case["switches"]}
    realtime = log(Consistency.REALTIME, {})
    found = {
        "late": [match[0] for _, _, sign, match in realtime if sign == "late"],
        "final": _net(realtime),
        "conservative": log(Consistency.EARLIEST, {}),
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


def _shown(log: Iterable[Told], of: Callable[[Any], list[str]], ids: Sequence[str]) -> Log:
    return [[t.when, t.position, t.sign, [ids[t.position]] if t.sign == "late" else of(t.match)] for t in log]


# Intervals


def _engine_log(case: Case) -> Ask:
    asked = question(case)
    plan = build_interval_plan(asked.pattern, asked.schema, ENGINE, columns=["id"])
    compiled = compile_intervals(plan, delay=case["K"] * SECOND, lateness=End(case["lateness"]))
    ids = asked.events.column("id").to_pylist()
    batch = batch_of(plan, asked.events.take([ids.index(id_) for id_ in case["arrival"]]))

    def log(consistency: Consistency, switches: Mapping[int, Consistency]) -> Log:
        found = log_of(compiled, batch, consistency=consistency, switches=switches)
        return _shown(found, lambda match: [case["arrival"][i] for i in match], case["arrival"])

    return log


# The event algebra


def _algebra_log(case: Case, policy: Policy) -> Ask:
    ordered = dict(case) | {"events": sorted(case["events"], key=lambda e: (e["t"], e["id"]))}
    events = algebra_case.table(ordered)
    request = request_of(algebra_case.pattern(case).policy(policy), time=AT, sequence=ID, columns=[ID])
    plan = occurrence_plans(events.schema, request, ENGINE).only
    lifted = ENGINE.evaluate(events, bits=plan.bits, values=plan.values)
    columns = [script_values(column.combine_chunks()) for column in lifted.values]
    values = [*zip(*columns, strict=True)] or [()] * len(events)
    times = [e["t"] * SECOND for e in ordered["events"]]
    known = [Event(*row) for row in zip(range(len(times)), times, lifted.masks[0].tolist(), values, strict=True)]
    ids = events.column(ID).to_pylist()
    arrived = [known[ids.index(id_)] for id_ in case["arrival"]]
    forbids = any(operator.kind is Kind.WITHOUT for operator in plan.operators)

    def matches(accepted: Sequence[int], clock: float) -> dict[tuple[str, ...], Life]:
        taken = sorted((arrived[i] for i in accepted), key=lambda event: event.position)
        until = None if clock == NEVER else int(clock)
        found = reference_occurrences(plan.operators, plan.root, policy, taken, time_value=plan.time_value, until=until)
        return {_members(one, ids): _life(one, forbids=forbids) for one in found}

    def log(consistency: Consistency, switches: Mapping[int, Consistency]) -> Log:
        arrivals = [Arrival(event.time, event.time) for event in arrived]
        found = told(
            arrivals,
            matches,
            delay=case["K"] * SECOND,
            lateness=End(case["lateness"]),
            consistency=consistency,
            switches=switches,
        )
        return _shown(found, list, case["arrival"])

    return log


def _life(derivation: Derivation, *, forbids: bool) -> Life:
    end = derivation.occurrence.end
    return Life(end, end if forbids else ALWAYS)


def _members(derivation: Derivation, ids: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted(_id(member, ids) for member in derivation.occurrence.members))


def _id(member: Member, ids: Sequence[str]) -> str:
    if len(member) == 2:
        return ids[member[1]]
    _, _, delay, behind = member
    return f"+{delay // SECOND}({','.join(sorted(_id(one, ids) for one in behind))})"
