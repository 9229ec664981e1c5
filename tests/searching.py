"""How many examples tests use: Hypothesis tests that run a whole host, and tests that kill streams and hosts."""

from __future__ import annotations

import os

from hypothesis import settings

KILLS = int(os.environ.get("CEPHEID_KILLS", "2"))
"""How often a host is killed before it may finish; `make soak` sets it to dozens and hundreds."""

STREAM_KILLS = int(os.environ.get("CEPHEID_KILLS", "1"))
"""How often a stream is killed: after each time Spark starts anew, which takes fifteen seconds of processor time."""


def share(percent: int) -> settings:
    """Run only this percentage of the profile's examples, because each example takes longer than in other tests."""
    return settings(max_examples=max(1, settings.default.max_examples * percent // 100))


def cases(usual: int, *, long: int) -> settings:
    """Run `usual` examples, and in the long profile `long`."""
    return settings(max_examples=long if settings.default.max_examples > 1_000 else usual)
