"""The patent's examples, and cases made after them, on every store."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from tests.durable.cases import Case, read_cases, run_case

CASES = read_cases()


def is_known(case: Case) -> bool:
    text = json.dumps(case)
    return "max_gap" not in text and "begin_without" not in text


@pytest.mark.parametrize("case", [*filter(is_known, CASES)], ids=lambda case: case["name"])
@pytest.mark.parametrize("restarts", [False, True], ids=["at once", "restarted"])
def test_case(case: Case, new_store: Callable[[], str], *, restarts: bool) -> None:
    """Matches, timeouts, open rows and queries are as expected, also if the host is opened anew before each step."""
    assert run_case(case, new_store(), restarts=restarts) == []
