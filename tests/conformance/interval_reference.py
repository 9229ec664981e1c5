"""Asks the reference the questions of cases about intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tests.conformance.interval_case import question
from tests.intervals.running import as_intervals

from cepheid.hosts.duckdb.engine import DuckDbEngine
from cepheid.kernel.consistency_reference import Arrival, LogEntry, emission_log
from cepheid.kernel.intervals.reference import by_acceptance, matches
from cepheid.lang.consistency import Consistency, End
from cepheid.plan.intervals.build import build_interval_plan


def answer(case: Mapping[str, Any]) -> dict[str, Any]:
    """The required fields of the answer."""
    query = question(case)
    plan = build_interval_plan(query.pattern, query.schema, DuckDbEngine())
    events = as_intervals(plan, query.events)
    ids = query.events.column("id").to_pylist()
    if "arrival" not in case:
        return {"matches": [[ids[i] for i in match] for match in matches(plan, events)]}
    order = [ids.index(id_) for id_ in case["arrival"]]
    arrived = [events[i] for i in order]
    ids = case["arrival"]
    lateness, switches = End(case["lateness"]), {at: Consistency(mode) for at, mode in case["switches"]}

    def log(consistency: Consistency, switches: Mapping[int, Consistency] | None = None) -> list[LogEntry]:
        arrivals = [Arrival(event.start, event.end) for event in arrived]
        known = by_acceptance(plan, arrived, lateness)
        delay = case["K"] * 1_000_000
        return list(
            emission_log(arrivals, known, delay=delay, lateness=lateness, consistency=consistency, switches=switches)
        )

    logs = {
        "conservative": log(Consistency.EARLIEST),
        "conservative_exact": log(Consistency.CONSERVATIVE),
        "earliest": log(Consistency.EARLIEST),
        "realtime": log(Consistency.REALTIME),
        "switching": log(Consistency(case["start_mode"]), switches),
    }
    return fields(logs, ids, case["expected"])


def fields(logs: Mapping[str, Sequence[LogEntry]], ids: Sequence[str], expected: Mapping[str, Any]) -> dict[str, Any]:
    """The logs in the form of the case, and the fields derived from them."""

    def shown(entry: LogEntry) -> list[Any]:
        match = entry.match if isinstance(entry.match, tuple) else (entry.match,)
        return [entry.when, entry.position, entry.sign, [ids[i] for i in match]]

    shown_logs = {
        name: [shown(entry) for entry in log] for name, log in logs.items() if name in expected or name != "switching"
    }
    realtime = shown_logs["realtime"]
    net: dict[str, list[Any]] = {}
    for _, _, sign, match in realtime:
        if sign == "+":
            net["/".join(match)] = match
        elif sign == "-":
            del net["/".join(match)]
    late = [match[0] for _, _, sign, match in realtime if sign == "late"]
    return {"late": late, "final": list(net.values()), **shown_logs}
