"""Asks Cepheid the question of a case about semantic filters, and says what is wrong with the answer."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeAlias

from tests.conformance import semantic_case
from tests.conformance.algebra_check import Case, differences, read_algebra
from tests.conformance.check import Failed, Passed, Result, checked_alone
from tests.conformance.tree_streams import Where

from cepheid.errors import KnowledgeError
from cepheid.knowledge.knowledge import Knowledge

Ask: TypeAlias = Callable[[Case], semantic_case.Found]
"""Answers a case."""


def is_semantic(path: Path) -> bool:
    """Whether the file has cases about semantic filters."""
    return next(("kb" in case for case in read_algebra(path)), False)


def check_all_semantic(cases: Iterable[Case], where: Where, ask: Ask | None = None) -> Iterator[tuple[Case, Result]]:
    """Each case and its result; `ask` answers for patterns where it is not `where`."""
    yield from checked_alone(cases, partial(check_semantic, where=where, ask=ask))


def check_semantic(case: Case, where: Where = "process", ask: Ask | None = None) -> Result:
    """Whether all required answers are right."""
    try:
        wrong = "\n".join(_wrong(case, where, ask))
    except Exception as error:  # noqa: BLE001 - a crash is a failure of the case, and the run continues
        return Failed(f"{type(error).__name__}: {error}")
    return Failed(wrong) if wrong else Passed()


def _wrong(case: Case, where: Where, ask: Ask | None) -> Iterator[str]:
    expected = case["expected"]
    try:
        known = semantic_case.knowledge(case["kb"], tuple(case["prefixes"].items()))
    except KnowledgeError as error:
        if expected.get("error") != "inconsistent" or "contradicts itself" not in str(error):
            yield f"error: {error}"
        return
    if "error" in expected:
        yield f"no error, expected {expected['error']}"
    elif case["kind"] == "filter":
        yield from _wrong_filter(case, known)
    else:
        found = (ask or partial(semantic_case.found, where=where))(case)
        yield from differences(expected, found.answers.__getitem__)
        if found.inconsistent != expected.get("inconsistent", {}):
            yield f"inconsistent: {json.dumps(found.inconsistent)}"
        if where != "stream" and ask is None:
            yield from _wrong_types(case, where)


def _wrong_filter(case: Case, known: Knowledge) -> Iterator[str]:
    expected = case["expected"]
    if (holds := known.holds(case["filter"], case["bind"])) != expected["holds"]:
        yield f"holds: {holds}"
    if "solutions" in expected:
        found = [list(one) for one in known.solutions(case["filter"], case["project"], case["bind"])]
        if found != sorted(expected["solutions"]):
            yield f"solutions: {found}"


def _wrong_types(case: Case, where: Where) -> Iterator[str]:
    wanted = {event: sorted(listed) for event, listed in case["expected"]["leaf_types"].items()}
    if (types := semantic_case.types_of_events(case, where)) != wanted:
        yield f"leaf_types: {json.dumps(types)}"


def semantic_failure(case: Case, got: str) -> str:
    return f"FAILED {case['id']}\n  {case['source']}\n  got:      {got}\n"
