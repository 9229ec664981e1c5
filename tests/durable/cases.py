"""Runs the cases of tests/conformance/hosts on a durable host."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

from cepheid.host import Host, open_host
from cepheid.hosts.durable.state import MatchesOf
from cepheid.lang.documents import pattern_from_text
from cepheid.plan.lifted import OutputName

CASES = Path(__file__).parent.parent / "conformance" / "hosts" / "hosts.jsonl"
TYPES = {"bigint": pa.int64(), "string": pa.string(), "boolean": pa.bool_(), "timestamp": pa.timestamp("us", "UTC")}

Case = Mapping[str, Any]


def read_cases(path: Path = CASES) -> list[Case]:
    """The cases in the file, one a line."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def run_case(case: Case, url: str, *, restarts: bool = False, opened: Callable[[str], Host] = open_host) -> list[str]:
    """What is wrong with what a host finds, stores and answers, as texts. With `restarts` the host is opened anew
    before each step; `opened` opens it.
    """
    run = _Run(case, url, opened)
    try:
        run.prepare()
        for number, step in enumerate(run.steps, 1):
            if restarts:
                run.host.close()
                run.host = opened(url)
            run.step(step)
            run.check_open(number)
        run.check_end()
    finally:
        run.host.close()
    return run.faults


class _Run:
    def __init__(self, case: Case, url: str, opened: Callable[[str], Host]) -> None:
        self.case, self.expected, self.url = case, case["expected"], url
        self.host = opened(url)
        self.schema = pa.schema([(name, TYPES[type_]) for name, type_ in case["columns"]])
        self.events = {event[0]: event for event in case["events"]}
        self.steps = case.get("steps", [{"feed": [*self.events]}, {"advance_time": "2024-03-04T23:59:59Z"}])
        alone = {"name": None, "input": "events", "pattern": case.get("pattern"), "key": case.get("key")}
        alone |= {name: case[name] for name in ("promote", "measures") if name in case}
        self.deployments = {one["name"]: one for one in case.get("deployments", [alone])}
        self.found: dict[str | None, list[dict[str, Any]]] = {name: [] for name in self.deployments}
        self.faults: list[str] = []

    def prepare(self) -> None:
        self.host.input("events", self.schema, time="at", sequence="id", lateness="0 seconds", keep="1 day")
        if not any("deploy" in step for step in self.steps):
            for one in self.deployments.values():
                self.deploy(one)

    def deploy(self, one: Mapping[str, Any], **how: Any) -> None:
        given, pattern = one["input"], pattern_from_text(json.dumps(one["pattern"]))
        tier = given if isinstance(given, str) else MatchesOf(tuple(given["matches_of"]), _raw(given))
        outputs: list[OutputName] = ["matches"]
        outputs += ["timeouts"] if "outputs" in one or _is_bounded(one["pattern"]) else []
        outputs += ["no_match"] if "no_match" in self.expected else []
        self.host.deploy(
            pattern,
            input=tier,
            key=one["key"],
            measures=one.get("measures"),
            promote=one.get("promote"),
            outputs=outputs,
            **how,
        )

    def step(self, step: Mapping[str, Any]) -> None:
        if "feed" in step:
            rows = [dict(zip(self.schema.names, self.events[number], strict=True)) for number in step["feed"]]
            for row in rows:
                row |= {name: _time(row[name]) for name in self.schema.names if _is_time(self.schema, name, row)}
            self.host.feed(pa.Table.from_pylist(rows, self.schema), input="events")
        elif "advance_time" in step:
            self.host.advance_time(step["advance_time"])
        elif "deploy" in step:
            how = {name: step[name] for name in ("since", "old") if name in step}
            self.deploy(self.deployments[step["deploy"]], **how)
        else:
            self.host.retire(step["retire"], how=step["how"])

    def check_open(self, number: int) -> None:
        for expected in self.expected.get("open_after", []):
            if expected["after_step"] == number:
                self.compare(f"open after step {number}", expected["rows"], self.open_rows(expected["rows"]))
        for query in self.expected.get("queries", []):
            if query["after_step"] == number:
                self.check_query(query)
        for counts in self.expected.get("open_counts", []):
            if counts["after_step"] == number:
                self.check_counts(counts)

    def open_rows(self, expected: list[dict[str, Any]]) -> list[dict[str, Any]]:
        rows = []
        for name, one in self.deployments.items():
            table = self.table("open", one)
            if table is None:
                continue
            for row in self.host.sql(f"SELECT * FROM {table}").to_pylist():
                stages = row["stages"] if not isinstance(row["stages"], str) else json.loads(row["stages"])
                said = {
                    "key": {key: row[key] for key in one["key"]},
                    "status": row["status"],
                    "stage": row["stage"],
                    "wakeup": _instant(row["wakeup"]),
                    "stages": _ids(stages),
                }
                if any("promoted" in e for e in expected):
                    said["promoted"] = {column: row[column] for column in one.get("promote", {})}
                if len(self.deployments) > 1 or any("deployment" in e for e in expected):
                    said["deployment"] = name if "@" not in str(name) else f"{str(name).split('@')[0]}@{row['version']}"
                rows.append(said)
        unique = {json.dumps(row, sort_keys=True): row for row in rows}
        return [*unique.values()]

    def table(self, prefix: str, one: Mapping[str, Any]) -> str | None:
        name = one["pattern"]["name"]
        query = f"SELECT open_table, matches_table FROM patterns WHERE name = '{name}'"
        found = self.host.sql(query).to_pylist()
        return found[0][f"{prefix}_table"] if found else None

    def check_query(self, query: Mapping[str, Any]) -> None:
        one = next(iter(self.deployments.values()))
        sql = query["sql"].format(open=self.table("open", one), matches=self.table("matches", one))
        found = [[_plain(value) for value in row] for row in self.rows(sql)]
        if found != query["rows"]:
            self.faults.append(f"{sql}: expected {query['rows']}, got {found}")

    def check_counts(self, counts: Mapping[str, Any]) -> None:
        one = next(iter(self.deployments.values()))
        open_, matches = self.table("open", one), self.table("matches", one)
        ((rows, wakeup),) = self.rows(f"SELECT count(*) AS n, min(wakeup) AS next FROM {open_}")
        by = dict(self.rows(f"SELECT stage, count(*) AS n FROM {open_} GROUP BY stage"))
        ((found,),) = self.rows(f"SELECT count(*) AS n FROM {matches}")
        said = {"rows": rows, "by_stage": by, "next_wakeup": _instant(wakeup), "matches": found}
        expected = {name: counts[name] for name in said}
        if said != expected:
            self.faults.append(f"counts after step {counts['after_step']}: expected {expected}, got {said}")

    def rows(self, query: str) -> list[list[Any]]:
        return [[*row.values()] for row in self.host.sql(query).to_pylist()]

    def check_no_match(self) -> None:
        counted = [count for counts in self.host.figures().no_match.values() for count in counts.items()]
        said, expected = {name: count for name, count in counted if count}, self.expected["no_match"]
        if said != {name: count for name, count in expected.items() if count}:
            self.faults.append(f"no match: expected {expected}, got {said}")
        stored = Counter[str]()
        for table in {self.table("matches", one) for one in self.deployments.values()} - {None}:
            assert table is not None
            stored += Counter(cause for (cause,) in self.rows(f"SELECT cause FROM no_match_{table.partition('_')[2]}"))
        if stored != said:
            self.faults.append(f"rows without a match: expected {said}, got {stored}")

    def check_end(self) -> None:
        if "no_match" in self.expected:
            self.check_no_match()
        several = self.expected.get("deployments")
        for name, one in self.deployments.items():
            expected = self.expected if several is None else several[name]
            rows = [row for row in self.sent() if row["pattern"] == one["pattern"]["name"]]
            if "@" in str(name):
                rows = [row for row in rows if row["version"] == str(name).split("@")[1]]
            for kind in ("match", "timeout"):
                wanted = expected.get({"match": "matches", "timeout": "timeouts"}[kind])
                if wanted is not None:
                    got = [self.said(row["content"], one, kind) for row in rows if row["kind"] == kind]
                    self.compare(f"{name}: {kind}", [self.shortened(row, one) for row in wanted], got)

    def sent(self) -> list[dict[str, Any]]:
        rows = self.host.sql("SELECT pattern, version, kind, content FROM outbox ORDER BY number").to_pylist()
        return [{**row, "content": json.loads(row["content"])} for row in rows]

    def said(self, row: Mapping[str, Any], one: Mapping[str, Any], kind: str) -> dict[str, Any]:
        said: dict[str, Any] = {"key": {key: row[key] for key in one["key"]}}
        if "stages" in row:
            said["stages"] = _ids(row["stages"])
        if kind == "timeout":
            return {**said, "deadline": _instant(row["detected_at"])}
        said |= {name: _instant(row[name]) for name in ("match_start", "match_end", "detected_at")}
        if self.case.get("measures"):
            said["measures"] = {name: row.get(name) for name in one["measures"]}
        return said

    def shortened(self, row: Mapping[str, Any], one: Mapping[str, Any]) -> dict[str, Any]:
        """The expected row, as far as rows with measures say it."""
        without = {"stages"} if one.get("measures") else {"measures"}
        said = {name: value for name, value in row.items() if name not in without}
        for name in ("match_start", "match_end", "detected_at", "deadline"):
            if name in said:
                said[name] = _instant(said[name])
        return said

    def compare(self, what: str, expected: Iterable[Mapping[str, Any]], got: Iterable[Mapping[str, Any]]) -> None:
        wanted, found = (Counter(json.dumps(row, sort_keys=True) for row in rows) for rows in (expected, got))
        for row in wanted - found:
            self.faults.append(f"{what}: missing {row}")
        for row in found - wanted:
            self.faults.append(f"{what}: unexpected {row}")


def _raw(given: Mapping[str, Any]) -> str | None:
    return "events" if given["raw"] else None


def _is_bounded(pattern: Mapping[str, Any]) -> bool:
    return "within" in json.dumps(pattern) or "max_gap" in pattern


def _is_time(schema: pa.Schema, name: str, row: Mapping[str, Any]) -> bool:
    return pa.types.is_timestamp(schema.field(name).type) and row[name] is not None


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _instant(value: Any) -> str | None:
    """A time as the cases write it."""
    if value is None:
        return None
    time = value if isinstance(value, datetime) else datetime.fromisoformat(value)
    return time.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _ids(stages: Any) -> dict[str, list[Any]]:
    entries = stages.items() if isinstance(stages, dict) else stages
    return {name: [event["id"] for event in events] for name, events in entries if events}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return _instant(value)
    if isinstance(value, str) and value[:2] == "20" and value.endswith("Z"):
        return _instant(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value
