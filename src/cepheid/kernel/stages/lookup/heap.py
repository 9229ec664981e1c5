"""Skew heaps of rows: the row with the least key is on top, and any row can be taken out.

Sleator and Tarjan, Self-Adjusting Heaps, SIAM J. Comput. 1986: two heaps are merged along their right sides, and at
each step left and right change places. Putting a row in and taking one out cost O(log rows) on average. A sorted array
was the alternative: a partial match that ends in the middle of it would move half of the others.
"""

from __future__ import annotations

from cepheid.compile.arrays import Ints, Records
from cepheid.kernel.jit import kernel
from cepheid.kernel.stages.layout import NOWHERE, START_ROW


@kernel
def push(places: Records, roots: Ints, root: int, number: int, key: int) -> None:
    """Puts a row into heap number `root`."""
    place = places[number]
    place.root, place.key, place.left, place.right = root, key, START_ROW, START_ROW
    top = merge(places, roots[root], number)
    roots[root], places[top].above = top, START_ROW


@kernel
def take_out(places: Records, roots: Ints, number: int) -> None:
    """Takes a row out of its heap."""
    place = places[number]
    above, below = place.above, merge(places, place.left, place.right)
    if below != START_ROW:
        places[below].above = above
    if above == START_ROW:
        roots[place.root] = below
    elif places[above].left == number:
        places[above].left = below
    else:
        places[above].right = below
    place.root = NOWHERE


@kernel
def merge(places: Records, one: int, other: int) -> int:
    """The top of a heap with the rows of both; START_ROW is an empty heap."""
    if one == START_ROW:
        return other
    if other == START_ROW:
        return one
    if places[other].key < places[one].key:
        one, other = other, one
    top = one
    while other != START_ROW:
        rest = places[one].right
        places[one].right = places[one].left
        if rest == START_ROW or places[other].key < places[rest].key:
            rest, other = other, rest
        places[one].left, places[rest].above = rest, one
        one = rest
    return top


@kernel
def add_up_to(places: Records, top: int, most: int, found: Ints, count: int) -> int:
    """Adds the rows of a heap with a key of `most` or less to `found`, which has `count` entries; returns the new
    count. Looks at no more than three rows for each.
    """
    at = count
    if top != START_ROW and places[top].key <= most:
        found[count] = top
        count += 1
    while at < count:
        place = places[found[at]]
        at += 1
        if place.left != START_ROW and places[place.left].key <= most:
            found[count] = place.left
            count += 1
        if place.right != START_ROW and places[place.right].key <= most:
            found[count] = place.right
            count += 1
    return count
