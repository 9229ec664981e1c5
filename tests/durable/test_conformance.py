"""Durable hosts answer the cases of FlinkCEP's operator and of the event algebra: a fixed sample on each store."""

from __future__ import annotations

from contextlib import closing
from functools import partial
from itertools import islice
from pathlib import Path

import pytest
from tests.conformance.algebra_check import algebra_failure, check_all_algebra, read_algebra
from tests.conformance.case import read_cases
from tests.conformance.check import Failed, check_all, durable
from tests.conformance.durable import STORES, DurableHost
from tests.conformance.run import failure_text

CASES = Path(__file__).parent.parent / "conformance"
MOST = 20


@pytest.mark.parametrize("kind", STORES)
def test_operator(kind: str) -> None:
    """Late events, watermarks and timeouts are those of FlinkCEP's operator."""
    cases = islice(read_cases(CASES / "flinkcep" / "random_operator.jsonl"), MOST)
    with closing(DurableHost(kind)) as host:
        checked = check_all(cases, partial(durable, host))
        failures = [failure_text(case, done.got) for case, done in checked if isinstance(done, Failed)]
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("kind", STORES)
def test_algebra(kind: str) -> None:
    """Occurrences of all policies are found, also out of order."""
    cases = islice(read_algebra(CASES / "algebra" / "algebra.jsonl"), MOST)
    with closing(DurableHost(kind)) as host:
        checked = check_all_algebra(cases, "process", ask=host.occurrences)
        failures = [algebra_failure(case, done.got) for case, done in checked if isinstance(done, Failed)]
    assert not failures, "\n".join(failures)
