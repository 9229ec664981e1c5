"""The counts and times of a stream's micro-batches."""

from __future__ import annotations

from cepheid.matchers.counts import LIVE_COUNTS

OPENED = "opened"
"""By how much the number of open partial matches has grown."""

STREAM_COUNTS = (*LIVE_COUNTS, OPENED)
"""The counts of each micro-batch."""

STREAM_TIMES = ("matching_us", "state_us")
"""Microseconds, summed over all shards: in matchers, and for reading and writing state (without Spark's commit)."""
