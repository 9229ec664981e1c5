"""The names of skip strategies in the reasons why a key cannot be divided."""

from __future__ import annotations

from cepheid.lang.stages.pattern import SkipTo

SKIP_NAMES = {
    SkipTo.NEXT: "SKIP_TO_NEXT",
    SkipTo.PAST_LAST_EVENT: "SKIP_PAST_LAST_EVENT",
    SkipTo.FIRST: "SKIP_TO_FIRST",
    SkipTo.LAST: "SKIP_TO_LAST",
}
"""FlinkCEP's names of the skip strategies. With each of them a match waits for those that started earlier."""
