"""Compares Cepheid's answers with cases about intervals.

The rules are those of the cases: matches are compared as sets, and logs step by step without the order inside a step. A
conservative log is right if it has each match once, between the earliest certain moment and that of K-slack.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

Log: TypeAlias = Sequence[Sequence[Any]]
"""[when, position, sign, match] each."""


def wrong_fields(expected: Mapping[str, Any], answer: Mapping[str, Any]) -> Iterator[str]:
    """The fields of the answer that differ from the expected ones."""
    for name, got in answer.items():
        if not _AGREES[name](got, expected):
            yield name


def _same_set(name: str) -> Any:
    return lambda got, expected: _counted(got) == _counted(expected[name])


def _counted(items: Sequence[Any]) -> Counter[str]:
    return Counter(map(json.dumps, items))


def _same_log(got: Log, expected: Any) -> bool:
    return _counted([list(entry) for entry in got]) == _counted(expected)


def _conservative(got: Log, expected: Mapping[str, Any]) -> bool:
    last = _moments(expected["conservative"])
    first = _moments(expected.get("conservative_earliest", expected["conservative"]))
    found = _moments(got)
    late = [_counted([e for e in log if e[2] == "late"]) for log in (got, expected["conservative"])]
    return (
        all(entry[2] in ("+", "late") for entry in got)
        and len(found) == sum(entry[2] == "+" for entry in got)
        and late[0] == late[1]
        and found.keys() == last.keys()
        and all(first[match] <= moment <= last[match] for match, moment in found.items())
    )


def _moments(log: Log) -> dict[str, tuple[int, int]]:
    steps = ("switch", "arrive", "eos")
    return {json.dumps(m): (position, steps.index(when)) for when, position, sign, m in log if sign == "+"}


def _log(name: str) -> Any:
    return lambda got, expected: _same_log(got, expected[name])


_AGREES: dict[str, Any] = {
    "matches": _same_set("matches"),
    "final": _same_set("final"),
    "late": lambda got, expected: list(got) == expected["late"],
    "conservative": _conservative,
    "conservative_exact": _log("conservative"),
    "earliest": lambda got, expected: _same_log(got, expected.get("conservative_earliest", expected["conservative"])),
    "realtime": _log("realtime"),
    "switching": _log("switching"),
    "realtime_recent_root": _log("realtime_recent_root"),
}
