"""How hard Hypothesis searches where an example goes through a whole host."""

from __future__ import annotations

from hypothesis import settings


def share(percent: int) -> settings:
    """So many of the profile's examples, of which each takes longer than those of other tests."""
    return settings(max_examples=settings.default.max_examples * percent // 100)
