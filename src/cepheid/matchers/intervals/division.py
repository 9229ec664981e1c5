"""Joins snapshots of interval matchers that have different keys, as parts have of one that was divided by key."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cepheid.kernel.intervals.joined import joined_kernels
from cepheid.kernel.parts import StatePart
from cepheid.lang.consistency import Consistency
from cepheid.matchers.division import check_ids, held_by, joined_batches, joined_late
from cepheid.matchers.snapshot import Snapshot


def joined_snapshots(
    snapshots: Sequence[Snapshot], consistency: Consistency, first_shared: Sequence[int] = ()
) -> Snapshot:
    """One snapshot with all that the snapshots have. They are of one pattern, and their clocks are at the same time. If
    each holds events that it shares with other patterns, `first_shared` has what is added to their numbers.

    Some may have been written before the pattern got this consistency. Then the joined one has a former consistency,
    too: who restores it changes the consistency, and so emits what the others have emitted already.

    Raises:
        SnapshotError: they make ids in different ways.
    """
    headers = [one.header for one in snapshots]
    check_ids(headers)
    arrays = joined_kernels([StatePart(one.arrays, held_by(one)) for one in snapshots])
    clock, _, dropped = arrays["cursor"].tolist()
    late = joined_late(snapshots, [int(one.arrays["cursor"][1]) for one in snapshots])
    arrays["cursor"] = np.array([clock, late.count, dropped])
    arrays["ordinal"] = np.concatenate([one.arrays["ordinal"] for one in snapshots])
    if first_shared:
        each = zip(snapshots, first_shared, strict=True)
        arrays["held"] = np.concatenate([one.arrays["held"] + first for one, first in each])
    before = [one["consistency"] for one in headers if one["consistency"] != consistency.value]
    header = headers[0] | {"consistency": before[0] if before else consistency.value}
    return Snapshot(header, arrays, joined_batches(snapshots) | ({"late": late.listed} if late.count else {}))
