"""The patent's examples, and cases made after them, on every store."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.durable.cases import Case, read_cases, run_case

CASES = read_cases()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
@pytest.mark.parametrize("restarts", [False, True], ids=["at once", "restarted"])
def test_case(case: Case, new_store: Callable[[], str], *, restarts: bool) -> None:
    """Matches, timeouts, open rows and queries are as expected, also if the host is opened anew before each step."""
    assert run_case(case, new_store(), restarts=restarts) == []
