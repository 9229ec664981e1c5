"""Random patterns without key whose stages are tied by equalities, and events for them."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pyarrow as pa

from cepheid import Pattern

FIRST = datetime(2024, 1, 1, tzinfo=UTC)
COLUMNS = {
    "id": pa.int64(),
    "at": pa.timestamp("us", "UTC"),
    "kind": pa.string(),
    "x": pa.int64(),
    "small": pa.int32(),
    "y": pa.float64(),
    "f": pa.float32(),
    "d": pa.decimal128(6, 2),
    "s": pa.string(),
    "n": pa.int64(),
    "tags": pa.map_(pa.string(), pa.int64()),
    "parts": pa.list_(pa.struct([pa.field("q", pa.int64())])),
}
SAME = ["x", "small", "y", "f", "d", "s", "upper(s)"]
"""Values that events of two stages may have in common."""
CROSSED = [("small", "x"), ("y", "x"), ("x", "small"), ("y", "f"), ("x", "y"), ("y", "small")]
"""A value of an event, and one of another type of an earlier event."""
ALONE = ["kind = 'A'", "kind <> 'B'", "n > 0", "n < 3"]
ACROSS = ["n > {s}.n", "n <> {s}.n", "y > avg({s}.y)", "count({s}) = 1", "first({s}.n) < 3", "last({s}.n, 1) IS NULL"]


def tied_pattern(seed: int, *, same: bool = False) -> Pattern:
    """A pattern of two to five stages. With `same`, all of them have the same value."""
    random_ = random.Random(seed)
    names = [f"s{number}" for number in range(random_.choice([2, 3, 3, 3, 4, 5]))]
    pattern = Pattern.begin(names[0])
    shared = random_.choice(SAME)
    if random_.random() < 0.6:
        pattern = pattern.where(random_.choice(ALONE))
    for number, name in enumerate(names[1:], 1):
        pattern = random_.choice([pattern.followed_by, pattern.followed_by_any, pattern.followed_by_any])(name)
        parts = [_tie(random_, names[:number], shared, same=same)]
        if random_.random() < 0.6:
            parts.append(random_.choice(ALONE))
        if random_.random() < 0.4:
            parts.append(random_.choice(ACROSS).format(s=random_.choice(names[: number + 1])))
        random_.shuffle(parts)
        pattern = pattern.where(" AND ".join(parts))
        if random_.random() < 0.2:
            pattern = pattern.within_previous(f"{random_.choice([2, 3])} seconds")
    if random_.random() < 0.6:
        pattern = pattern.within(f"{random_.choice([3, 6, 15])} seconds")
    if random_.random() < 0.2:
        pattern = pattern.max_gap(f"{random_.choice([2, 3])} seconds")
    return pattern


def _tie(random_: random.Random, earlier: list[str], shared: str, *, same: bool) -> str:
    """An equality with an earlier stage."""
    stage = random_.choice(earlier)
    value = other = shared if same else random_.choice(SAME)
    if not same and random_.random() < 0.3:
        value, other = random_.choice(CROSSED)
    other = f"upper({stage}.s)" if other == "upper(s)" else f"{stage}.{other}"
    return random_.choice([f"{value} = {other}", f"{other} = {value}"])


def tied_events(seed: int, count: int) -> pa.Table:
    """Events in any order. Some have NULLs, some the same time, and some are equal in all but their id."""
    random_ = random.Random(seed)
    numbers = [0, 1, 2, None]
    doubles = [0.0, -0.0, 1.0, 2.0, float("nan"), None]
    rows = [
        {
            "id": number,
            "at": FIRST + timedelta(seconds=random_.randrange(count)),
            "kind": random_.choice(["A", "B", "C"]),
            "x": random_.choice(numbers),
            "small": random_.choice(numbers),
            "y": random_.choice(doubles),
            "f": random_.choice(doubles),
            "d": random_.choice(numbers),
            "s": random_.choice(["a", "A", "b", None]),
            "n": random_.randrange(5),
            "tags": random_.choice([[], [("a", 1), ("b", None)], None]),
            "parts": random_.choice([[], [{"q": 1}, None], None]),
        }
        for number in range(count)
    ]
    copies = [{**row, "id": count + number} for number, row in enumerate(random_.sample(rows, count // 4))]
    return pa.Table.from_pylist([*rows, *copies], pa.schema(COLUMNS))
