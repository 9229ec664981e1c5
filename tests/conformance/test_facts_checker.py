"""The checker that comes with the facts finds Cepheid's answers right, too."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.conformance import semantic_case
from tests.conformance.algebra_check import read_algebra

from cepheid.errors import KnowledgeError

FOLDER = Path(__file__).parent / "algebra"
CASES = [*read_algebra(FOLDER / "semantic.jsonl")]
SAMPLE = CASES[1::2]
"""The facts that test_semantic.py leaves out, and every other filter."""


@pytest.mark.filterwarnings("ignore:.* never holds:cepheid.errors.CepheidWarning")
@pytest.mark.filterwarnings("ignore:.*policy 'recent' with the condition:cepheid.errors.CepheidWarning")
def test_answers_about_semantic_filters_are_right(tmp_path: Path) -> None:
    """Whether filters hold and for which individuals, occurrences, types of events, and contradictions."""
    answers = [{"id": case["id"], "answer": answer(case)} for case in SAMPLE]
    assert checked(tmp_path, answers) == f"{len(SAMPLE)} answers, {len(SAMPLE)} right, 0 cases unanswered"


def test_wrong_answers_are_found(tmp_path: Path) -> None:
    """An answer with a changed field is not right."""
    case = next(case for case in SAMPLE if "holds" in case["expected"])
    wrong = {"id": case["id"], "answer": {"holds": not answer(case)["holds"]}}
    assert checked(tmp_path, [wrong]) == f"1 answers, 0 right, {len(SAMPLE) - 1} cases unanswered"


def checked(folder: Path, answers: list[dict[str, Any]]) -> str:
    """What the checker prints about these answers, without its list of wrong fields."""
    corpus, given = folder / "facts.jsonl", folder / "answers.jsonl"
    corpus.write_text("\n".join(map(json.dumps, SAMPLE)))
    given.write_text("\n".join(map(json.dumps, answers)))
    command = [sys.executable, FOLDER / "check.py", corpus, given]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.stderr
    return done.stdout.splitlines()[-1].partition(";")[0]


def answer(case: Mapping[str, Any]) -> dict[str, Any]:
    """Cepheid's answer in the form of the facts."""
    try:
        known = semantic_case.knowledge(case["kb"], tuple(case["prefixes"].items()))
    except KnowledgeError:
        return {"error": "inconsistent"}
    if case["kind"] != "filter":
        return answer_of_pattern(case)
    found: dict[str, Any] = {"holds": known.holds(case["filter"], case["bind"])}
    if "solutions" in case["expected"]:
        found["solutions"] = known.solutions(case["filter"], case["project"], case["bind"])
    return found


def answer_of_pattern(case: Mapping[str, Any]) -> dict[str, Any]:
    found = semantic_case.found(case, "process")
    unrestricted, recent = (found.answers[policy] for policy in semantic_case.POLICIES)
    # A contradiction is only a field of the facts in which events bring one.
    inconsistent = {"inconsistent": found.inconsistent} if found.inconsistent else {}
    return {
        "lt": {"unrestricted": unrestricted, "recent_root": recent},
        "leaf_types": semantic_case.types_of_events(case, "process"),
        **inconsistent,
    }
