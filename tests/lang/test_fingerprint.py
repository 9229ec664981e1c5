"""The fingerprint of a pattern: what changes it, what does not, and that stored ones stay valid."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from cepheid.lang import fingerprint
from cepheid.lang.documents import pattern_from_text, pattern_to_yaml
from cepheid.lang.stages.document import pattern_form
from cepheid.lang.stages.pattern import Pattern, Skip

BASE = (
    Pattern.begin("a", name="chain", version="1")
    .subtype("payment")
    .where("x > $limit")
    .followed_by("b")
    .one_or_more()
    .until("x = $stop")
    .within("1 hour")
    .skip(Skip.to_next())
    .taxonomy("type", {"card": ["payment", "plastic"], "transfer": "payment"})
    .with_parameters(limit=1, stop="s")
)


def pattern_fingerprint(pattern: Pattern) -> str:
    return fingerprint.pattern_fingerprint(pattern_form(pattern))


def test_stored_digests() -> None:
    """Snapshots contain fingerprints, so those of existing patterns must not change."""
    assert pattern_fingerprint(Pattern.begin("a")) == "36bc0ebd288a9fe5a3936945bd6b59ab"
    assert pattern_fingerprint(BASE) == "b8e2858ac44f10ea38121df288d8055d"


@pytest.mark.parametrize(
    "change",
    [
        lambda p: p.named("other"),
        lambda p: p.named("chain", version="2"),
        lambda p: p.with_parameters(limit=1),
        lambda p: pattern_from_text(pattern_to_yaml(p)),
        lambda _: BASE_IN_ANOTHER_ORDER,
    ],
)
def test_what_does_not_count(change: Callable[[Pattern], Pattern]) -> None:
    """The name, the version, and the order in which types and parameters are declared do not change the fingerprint."""
    assert pattern_fingerprint(change(BASE)) == pattern_fingerprint(BASE)


BASE_IN_ANOTHER_ORDER = (
    Pattern.begin("a")
    .taxonomy("type", {"transfer": ["payment"], "card": ["plastic", "payment"]})
    .with_parameters(stop="s", limit=1)
    .subtype("payment")
    .where("x > $limit")
    .followed_by("b")
    .until("x = $stop")
    .one_or_more()
    .skip(Skip.to_next())
    .within("60 minutes")
)


@pytest.mark.parametrize(
    "change",
    [
        lambda p: p.where("y"),
        lambda p: p.subtype("card"),
        lambda p: p.optional(),
        lambda p: p.next("c"),
        lambda p: p.within("1 minute"),
        lambda p: p.within_previous("1 minute"),
        lambda p: p.skip(Skip.no_skip()),
        lambda p: p.with_parameters(limit=2),
        lambda p: p.with_parameters(limit=1.0),
        lambda p: p.with_parameters(limit=True),
        lambda p: p.with_parameters(limit="1"),
    ],
)
def test_what_counts(change: Callable[[Pattern], Pattern]) -> None:
    """Everything that decides which matches are found changes it, also the types of parameters."""
    assert pattern_fingerprint(change(BASE)) != pattern_fingerprint(BASE)


def test_lists() -> None:
    """The order of a list does not count, its values and their types do."""
    lists = [[1, 2], [2, 1], [1], [1.0, 2], 1]
    first, turned, *others = [pattern_fingerprint(BASE.with_parameters(limit=values)) for values in lists]
    assert first == turned
    assert len({first, *others}) == 4


def test_types_count() -> None:
    """Another taxonomy changes it, as it may find other matches."""
    stage = Pattern.begin("a").subtype("x")
    kinds = [{}, {"y": "x"}, {"z": "x"}, {"y": "x", "z": "y"}]
    assert len({pattern_fingerprint(stage.taxonomy("type", k)) for k in kinds}) == 4
    assert pattern_fingerprint(stage.taxonomy("type")) != pattern_fingerprint(stage.taxonomy("kind"))
