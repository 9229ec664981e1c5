"""A warning for patterns of all kinds without a name."""

from __future__ import annotations

from collections.abc import Iterator

from cepheid.plan.plan_set import NamedPattern


def nameless(pattern: NamedPattern) -> Iterator[str]:
    """A sentence without its end if the pattern's name is empty."""
    if not pattern.name.strip():
        yield (
            "the pattern's name is empty, but tells its matches and their ids from those of other patterns. Give it "
            "one, as in named('late_chain')"
        )
