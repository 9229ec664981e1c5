"""Instants, and what the clock of a time zone shows at them.

It is a module of its own because `import cepheid` needs the other times, and not the functions of Arrow.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from cepheid.events.time import TIME_TYPE, arrow_zone

_UTC = ("UTC", "Etc/UTC")


def on_clock(instants: pa.Array, zone: str) -> pa.Array:
    """What the clock in the zone shows at these instants: times without a zone."""
    if arrow_zone(zone) in _UTC:  # the same numbers, so nothing is computed
        return instants.cast(pa.timestamp("us"))
    return pc.local_timestamp(instants.cast(pa.timestamp("us", arrow_zone(zone))))


def instants_of(local: pa.ChunkedArray, zone: str, **rules: str) -> pa.ChunkedArray:
    """The instants at which the clock in the zone shows these times, which have no zone. `rules` are those of Arrow's
    `assume_timezone`.

    Raises:
        pa.ArrowInvalid: the rules do not say which instant is meant.
    """
    if arrow_zone(zone) in _UTC:
        return local.cast(TIME_TYPE)
    return pc.assume_timezone(local, zone, **rules).cast(TIME_TYPE)
