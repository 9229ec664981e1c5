"""Generated events for the benchmarks: readings of devices, 36 bytes each in Arrow."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

SECOND = 1_000_000
START = 1_767_225_600 * SECOND  # 2026-01-01 00:00 UTC


def make_events(rows: int, keys: int, *, ordered: bool = True, text_keys: bool = False) -> pa.Table:
    """`rows` events of `keys` devices, about one per second and device, sorted by device and time or by time alone.

    `kind` is one of 100, so few events match a kind; `phase` is one of three, so every event matters to patterns on it;
    `price` is between 50 and 150.
    """
    random = np.random.default_rng(rows + keys)
    device = random.integers(0, keys, rows)
    device.sort()
    first = np.searchsorted(device, np.arange(keys))
    at = START + (np.arange(rows) - first[device]) * SECOND + random.integers(0, SECOND // 2, rows)
    if not ordered:
        order = np.argsort(at, kind="stable")
        device, at = device[order], at[order]
    names = pa.array(np.char.add("device-", device.astype(str))) if text_keys else pa.array(device)
    return pa.table(
        {
            "device": names,
            "at": pa.array(at).cast(pa.timestamp("us", "UTC")),
            "kind": pa.array(random.integers(0, 100, rows).astype(np.int32)),
            "phase": pa.array(random.integers(0, 3, rows).astype(np.int64)),
            "price": pa.array(random.uniform(50, 150, rows)),
        }
    )
