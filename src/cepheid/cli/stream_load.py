"""The load of a running stream, as rows of the live view."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from cepheid.hosts.spark.stream.load.advice import Advice
from cepheid.hosts.spark.stream.load.shards import ShardProgress
from cepheid.hosts.spark.stream.progress import Progress, busiest

_MOST = 3
"""The most shards, and the most keys of a pattern."""


def load_rows(last: Progress, so_far: Progress, advice: Advice | None) -> Iterator[tuple[str, str]]:
    """What the view says of the load, each with its name: the busiest shards of the last micro-batch, the hottest keys
    of all micro-batches, keys that need more copies than there are standbys, and advice.
    """
    if last.max_over_mean is not None:
        yield "busiest shard", f"{last.max_over_mean:.1f} times the mean of all"
    for name, number, shard in busiest(last, _MOST):
        yield f"  {name} {number}", _load(shard)
    for name, pattern in so_far.patterns.items():
        for key in pattern.hottest[:_MOST]:
            yield f"hot key {key.key}", f"{key.share:.0%} of the events of {name}, in shard {key.shard}"
    for one in last.short or ():
        yield "too few standbys", str(one)
    if advice is not None:
        yield "advice", str(advice)


def _load(shard: ShardProgress) -> str:
    size, open_ = shard.state_bytes or 0, shard.open_partial_matches or 0
    busy = shard.useful / timedelta(milliseconds=1)
    return f"{shard.events:,} events, {busy:,.1f} ms, {size / 1024:,.1f} KiB of state, {open_:,} open"
