"""Folders of pattern files, and the sets of patterns that follow from them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.stream.supervised import pair

from cepheid import OccurrencePattern, PatternError, pattern_to_yaml
from cepheid.hosts.spark.supervised.folder import content_of, located, patterns_of
from cepheid.hosts.spark.supervised.ledger import set_of
from cepheid.hosts.spark.supervised.pattern_set import Change, PatternSet, following, from_json, to_json

AB, AC = pair("ab", "b"), pair("ac", "c")
NOTHING = PatternSet(0, ())


def problems_of(folder: Path, **parameters: int) -> list[str]:
    with pytest.raises(PatternError) as caught:
        patterns_of(content_of(folder), folder, parameters)
    return [str(problem).splitlines()[0] for problem in caught.value.problems]


def test_files_may_have_several_patterns(tmp_path: Path) -> None:
    """YAML documents are separated by ---; other files, and hidden ones, are no pattern files; a parameter goes to the
    patterns that use it.
    """
    with_limit = pattern_to_yaml(AC).replace("x = 'a'", "x = 'a' AND id > $least")
    (tmp_path / "two.yaml").write_text(f"# two patterns\n---\n{pattern_to_yaml(AB)}---\n{with_limit}")
    (tmp_path / ".draft.yaml").write_text("no pattern")
    (tmp_path / "notes.txt").write_text("no pattern")
    found = patterns_of(content_of(tmp_path), tmp_path, {"least": 7})
    assert found["ab"].pattern == AB
    assert [(one.name, one.value) for one in found["ac"].pattern.parameters] == [("least", 7)]


def test_all_problems_of_all_files(tmp_path: Path) -> None:
    """Each problem has its file, and its line in the file, also in a second document."""
    nothing = "no pattern file: a stream looks for one pattern at least. Pattern files end in .yaml, .yml or .json"
    assert problems_of(tmp_path) == [f"{nothing} ({tmp_path})"]
    (tmp_path / "a.yaml").write_text(f"{pattern_to_yaml(AB)}---\nname: two\nstages:\n  - begin: a\n    wear: x\n")
    (tmp_path / "b.yaml").write_text(pattern_to_yaml(AB))
    (tmp_path / "c.json").write_bytes(b'{"name": "\xff"}')
    found = problems_of(tmp_path, least=7)
    lines = len(pattern_to_yaml(AB).splitlines()) + 5
    assert found[0] == f"a pattern file must be UTF-8 text, this one is not ({tmp_path / 'c.json'}, line 1)"
    assert found[1].endswith(f"({tmp_path / 'a.yaml'}, line {lines}, column 5)")
    assert found[2] == (
        f"{tmp_path / 'a.yaml'} has a pattern 'ab', too: give one of them another name ({tmp_path / 'b.yaml'})"
    )
    assert found[3] == f"no pattern uses the parameter $least ({tmp_path})"


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(PatternError, match=r"gone: the patterns cannot be read \(No such file or directory\)$"):
        content_of(tmp_path / "gone")


def test_problems_of_planning_get_their_place(tmp_path: Path) -> None:
    (tmp_path / "ab.yaml").write_text(pattern_to_yaml(AB))
    files = patterns_of(content_of(tmp_path), tmp_path)
    with pytest.raises(PatternError) as caught:
        following(NOTHING, {"ab": AB}, "drain", [following(NOTHING, {"ab": AC.named("ab")}, "drain", ())])
    (problem,) = located(caught.value.problems, files)
    assert str(problem) == (
        f"pattern 'ab' was deployed with version '1' before: give it another one ({tmp_path / 'ab.yaml'}, pattern 'ab')"
    )


def test_patterns_that_stay_keep_their_numbers() -> None:
    """Another version gets another number, and the former one drains until nothing of it is open."""
    first = following(NOTHING, {"ab": AB, "ac": AC}, "drain", ())
    new = pair("ab", "z", version=2)
    second = following(first, {"ab": new, "ac": AC}, "drain", [first])
    assert [(str(one), one.number, one.drains) for one in second.deployments] == [
        ("ac, version 1", 1, False),
        ("ab, version 2", 2, False),
        ("ab, version 1", 0, True),
    ]
    assert second.places.labels == ["ac", "ab", "ab@1"]
    change = Change.between(first, second)
    assert [[str(one) for one in each] for each in change] == [["ab, version 2"], ["ab, version 1"], []]
    third = following(second, {"ab": new, "ac": AC}, "drain", [first, second], idle=[0])
    assert [one.number for one in third.deployments] == [1, 2]
    assert third.ended == (0,)
    assert [str(one) for one in Change.between(second, third).gone] == ["ab, version 1"]
    assert from_json(to_json(third)) == third


def test_dropped_patterns_leave_at_once() -> None:
    first = following(NOTHING, {"ab": AB, "ac": AC}, "drain", ())
    second = following(first, {"ac": AC}, "drop", [first])
    assert [str(one) for one in second.deployments] == ["ac, version 1"]
    assert second.ended == (0,)


def test_a_version_has_one_content() -> None:
    """This also holds for versions that are long gone. With the same content a version is deployed anew."""
    first = following(NOTHING, {"ab": AB, "ac": AC}, "drain", ())
    second = following(first, {"ac": AC}, "drop", [first])
    with pytest.raises(PatternError, match="'ab' was deployed with version '1' before: give it another one"):
        following(second, {"ab": pair("ab", "z", version=1), "ac": AC}, "drain", [first, second])
    again = following(second, {"ab": AB, "ac": AC}, "drain", [first, second])
    assert [(one.number, one.name) for one in again.deployments] == [(1, "ac"), (2, "ab")]
    assert len(following(second, {"ab": pair("ab", "b", version=2), "ac": AC}, "drain", [first, second]).running) == 2


def test_a_pattern_that_comes_and_goes_drains_several_times() -> None:
    """Each deployment of a version has a number and a label of its own."""
    known = [following(NOTHING, {"ab": AB, "ac": AC}, "drain", ())]
    for wanted in ({"ac": AC}, {"ab": AB, "ac": AC}, {"ac": AC}, {"ab": AB, "ac": AC}):
        known.append(following(known[-1], wanted, "drain", known))
    places = [(place.number, place.label) for place in known[-1].places.each]
    assert places == [(1, "ac"), (3, "ab"), (0, "ab@1"), (2, "ab@1#2")]


def test_the_set_of_a_micro_batch() -> None:
    """The last set counts that begins with the micro-batch or before it."""
    sets = [PatternSet(first, (), (number,)) for number, first in enumerate((0, 4, 4, 9))]
    assert [set_of(batch, sets).ended[0] for batch in (0, 3, 4, 8, 9, 20)] == [0, 0, 2, 2, 3, 3]


def test_earlier_ledgers_are_read() -> None:
    """A ledger that was ever written can be read."""
    document = (
        """{"name": "ab", "stages": [{"begin": "a", "where": "x = 'a'"}, {"followed_by": "b", "where": "x = 'b'"}], """
        """"version": 2, "within": "20 seconds"}"""
    )
    each = [{"number": 1, "status": "running", "pattern": document}]
    stored = {"format": 1, "number": 1, "first": 7, "deployments": each, "ended": [0]}
    new = pair("ab", "b", version=2)
    first = following(NOTHING, {"ab": AB}, "drop", ())
    expected = following(first, {"ab": new}, "drop", [first])
    assert from_json(stored) == replace(expected, first=7)


def test_a_pattern_that_cannot_drain() -> None:
    """It may be replaced, if what is open of it is dropped."""
    first = OccurrencePattern.of("a; b").named("apart").taxonomy("x").policy("recent")
    former = following(NOTHING, {"apart": first}, "drain", [])
    with pytest.raises(PatternError, match=r"'apart' is .*which cannot be drained: drop what is open of it"):
        following(former, {"ab": AB}, "drain", [former])
    assert [one.name for one in following(former, {"ab": AB}, "drop", [former]).deployments] == ["ab"]
