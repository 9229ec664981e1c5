"""`detect` and filters give what the facts about semantic filters say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.conformance.algebra_check import read_algebra
from tests.conformance.check import Failed, Passed
from tests.conformance.run import main
from tests.conformance.semantic_check import check_all_semantic, check_semantic, semantic_failure

FILE = Path(__file__).parent / "algebra" / "semantic.jsonl"
CASES = [case for case in read_algebra(FILE) if case["kind"] != "filter"]
"""The facts about patterns; tests/knowledge/test_facts.py has those about filters alone."""


def test_a_sample_of_the_facts() -> None:
    """Every other fact: what is found with both policies, of which types events are, and what contradicts the
    knowledge. `make conformance` checks all.
    """
    results = [*check_all_semantic(CASES[::2], "process")]
    failures = [semantic_failure(case, result.got) for case, result in results if isinstance(result, Failed)]
    assert not failures, "\n".join(failures)


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("where", ["spark", "stream"])
def test_a_sample_on_spark(where: str) -> None:
    """A fact with several sessions, and one with a contradiction."""
    several = next(case for case in CASES if any("key" in event for event in case["events"]))
    contradicted = next(case for case in CASES if "inconsistent" in case["expected"])
    results = check_all_semantic([several, contradicted], where)  # type: ignore[arg-type] - one of the places
    assert [result for _, result in results] == [Passed(), Passed()]


def test_a_failure_is_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command says what was found in place of what was expected."""
    case = next(case for case in CASES if case["expected"].get("lt", {}).get("unrestricted"))
    nothing = {**case["expected"]["lt"], "unrestricted": [], "recent_root": []}
    wrong = {**case, "expected": {**case["expected"], "lt": nothing}}
    assert isinstance(check_semantic(wrong), Failed)
    file = tmp_path / "cases.jsonl"
    file.write_text(json.dumps(wrong))
    assert main([str(file)]) == 1
    assert f"FAILED {case['id']}" in capsys.readouterr().out
