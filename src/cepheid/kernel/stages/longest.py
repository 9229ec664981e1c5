"""`longest` on a group: a match is held while partial matches may continue it, and emitted when the last of them ends.

Each such partial match has the match as its `whole`: the match's last node, which counts these partial matches. If one
of them becomes a longer match by further turns of the loop, the node becomes GROWN: the shorter match is then not
emitted.
"""

from __future__ import annotations

from cepheid.kernel.jit import kernel
from cepheid.kernel.stages.layout import GROWN, Cursor, PartialMatches
from cepheid.kernel.stages.release import complete


@kernel
def add_holder(partials: PartialMatches, number: int, whole: int) -> None:
    """Sets the match that a partial match may continue, and counts this holder. `whole` may be -1: none."""
    partials.rows[number].whole = whole
    if whole >= 0 and partials.nodes[whole].holders != GROWN:
        partials.nodes[whole].holders += 1


@kernel
def outgrow(partials: PartialMatches, whole: int) -> None:
    """Marks the match at `whole`, if there is one, as continued by another."""
    if whole >= 0:
        partials.nodes[whole].holders = GROWN


@kernel
def remove_holder(partials: PartialMatches, cursor: Cursor, start: int, whole: int) -> None:
    """Removes a holder of `whole`: a partial match that ends, or whose successors were added as holders before. If it
    was the last holder, the match is complete.
    """
    entry = partials.nodes[whole]
    if entry.holders == GROWN:
        return
    entry.holders -= 1
    if entry.holders == 0:
        length, node = 0, whole
        while node >= 0:
            length += 1
            node = partials.nodes[node].parent
        complete(partials, cursor, start, whole, length)
