"""The smoothed load of something that may get hot."""

from __future__ import annotations

AVERAGED_OVER = 5.0
"""How far an average reaches back, in seconds: it is at 67 % of a new load after five of them, at 89 % after ten."""


def smoothed(before: float, load: float, *, seconds: float = 1.0, over: float = AVERAGED_OVER) -> float:
    """The exponentially weighted average, one observation later: `load` was the load of the last `seconds`.

    The load is a rate, so it counts for as much as it lasted. One that lasted `over` seconds or longer replaces what
    was before.
    """
    return before + (load - before) / max(1.0, over / seconds)
