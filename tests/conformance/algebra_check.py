"""Asks `detect` the question of a case of the event algebra, and says what is wrong with the answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

from tests.conformance.algebra_case import Answer, answer
from tests.conformance.check import Failed, NotSupported, Passed, Result, checked_alone, checked_in_groups
from tests.conformance.translate import Unsupported
from tests.conformance.tree_streams import Where, occurrences_together

Case = Mapping[str, Any]
Ask: TypeAlias = Callable[[Case, str], Answer]
"""Answers a case for a policy."""
CASES_A_QUERY = 6
"""The number of cases in one query; each case needs three or more policies."""


def read_algebra(path: Path) -> Iterator[Case]:
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def is_algebra(path: Path) -> bool:
    """Whether the file has cases of the event algebra."""
    return next((case.get("expr") is not None and "arrival" not in case for case in read_algebra(path)), False)


def check_all_algebra(
    cases: Iterable[Case], where: Where, split: list[Exception] | None = None, ask: Ask = answer
) -> Iterator[tuple[Case, Result]]:
    """Each case and its result; `ask` answers where it is not Spark. On Spark, one query has several cases, and several
    queries run at a time, as most wait for its scheduler. `split` as in `checked_in_groups`.
    """
    if where == "process":
        yield from checked_alone(cases, partial(check_algebra, ask=ask))
        return

    def together(cases: Sequence[Case]) -> list[Result]:
        found = occurrences_together([(case, _policies(case)) for case in cases], where)
        return [_result(_wrong(case, answers.__getitem__)) for case, answers in zip(cases, found, strict=True)]

    known = list(cases)
    groups = [known[start : start + CASES_A_QUERY] for start in range(0, len(known), CASES_A_QUERY)]
    yield from checked_in_groups(groups, together, partial(check_algebra, where=where), split)


def check_algebra(case: Case, where: Where = "process", ask: Ask = answer) -> Result:
    """Whether all required answers are right."""
    try:
        if where == "process":
            return _result(_wrong(case, partial(ask, case)))
        (found,) = occurrences_together([(case, _policies(case))], where)
        return _result(_wrong(case, found.__getitem__))
    except Unsupported as gap:
        return NotSupported(gap.feature)
    except Exception as error:  # noqa: BLE001 - a crash is a failure of the case, and the run continues
        return Failed(f"{type(error).__name__}: {error}")


def _result(wrong: Iterable[str]) -> Result:
    text = "\n".join(wrong)
    return Failed(text) if text else Passed()


def _policies(case: Case) -> list[str]:
    return ["unrestricted", "recent", *case["expected"].get("contexts", {})]


def _wrong(case: Case, answer_of: Callable[[str], Answer]) -> Iterator[str]:
    yield from differences(case["expected"], answer_of)
    for context, listed in case["expected"].get("contexts", {}).items():
        got = answer_of(context)
        if _normal(got) != _normal(listed):
            yield _difference(context, got, listed)


def differences(expected: Mapping[str, Any], answer_of: Callable[[str], Answer]) -> Iterator[str]:
    """What is wrong with the answers for the policies that every case has."""
    expected = expected["lt"]
    got = answer_of("unrestricted")
    if _normal(got) != _normal(expected["unrestricted"]):
        yield _difference("unrestricted", got, expected["unrestricted"])
    got = answer_of("recent")
    if not is_valid_recent(got, expected["unrestricted"], expected["recent_root"]):
        yield _difference("recent", got, expected["recent_root"])


def is_valid_recent(got: Answer, everything: Answer, expected: Answer) -> bool:
    """Whether the spans are exactly those of the policy, each once; the policy does not determine the member events."""
    given = _normal(got)
    spans = [sorted(one[:2] for one in found) for found in (got, expected)]
    return len({*given}) == len(given) and {*given} <= {*_normal(everything)} and spans[0] == spans[1]


def _normal(found: Answer) -> list[str]:
    return sorted(json.dumps([end, start, sorted(ids)]) for end, start, ids in found)


def _difference(what: str, got: Answer, expected: Answer) -> str:
    missing = [one for one in _normal(expected) if one not in _normal(got)]
    more = [one for one in _normal(got) if one not in _normal(expected)]
    return f"{what}: missing {', '.join(missing) or 'none'}; not expected {', '.join(more) or 'none'}"


def algebra_failure(case: Case, got: str) -> str:
    events = ", ".join(f"{one['id']}:{one['type']}@{one['t']}" for one in case["events"])
    return f"FAILED {case['id']}\n  pattern:  {case['text']}\n  events:   {events}\n  got:      {got}\n"
