"""How hard tests search: Hypothesis where an example goes through a whole host, and those that kill streams."""

from __future__ import annotations

import os

from hypothesis import settings

KILLS = int(os.environ.get("CEPHEID_KILLS", "3"))
"""How often a stream is killed before it may end; `make soak` does it dozens of times."""


def share(percent: int) -> settings:
    """So many of the profile's examples, of which each takes longer than those of other tests."""
    return settings(max_examples=settings.default.max_examples * percent // 100)
