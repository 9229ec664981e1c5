"""A fixed sample of `make fuzz`."""

from __future__ import annotations

import pytest
from tests.fuzz.campaign import ACCEPTED, CAMPAIGNS, REFUSED, run

CASES = {"documents": 150, "texts": 400, "conditions": 60, "snapshots": 60, "stores": 12, "checkpoints": 60}


@pytest.mark.parametrize("name", [*CAMPAIGNS])
def test_mutations_are_accepted_or_refused(name: str) -> None:
    """Whatever is in it, it works or ends in one of Cepheid's errors."""
    counts, findings = run(name, CASES[name], seed=0)
    assert findings == []
    assert counts[REFUSED] > 0
    assert counts[ACCEPTED] > 0
