"""Zhou et al.'s experiments with intervals out of order, on Cepheid's engine and on simpler ones.

python benchmarks/out_of_order.py [--events 1000000] [--quick] [--out out/out_of_order]

A thousand generators emit events of four types; some of the events are delayed on their way. The experiments vary the
share of events that arrive out of order, how long the engines wait for them (K), the number of events of a match, and
whether events have a duration. The engines are in `out_of_order_engines.py`, their events in `out_of_order_events.py`.
Measured are the latency of matches, the rate of compensation (insertions that are retracted), the time, and precision
and recall; these compare with the matches in the same events when they arrive in order. Both consistencies of Cepheid
must find exactly those matches; otherwise the program fails.

Tables are printed; `--out` is a folder for all measures as CSV and JSON, and for the drawing.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from measuring import machine, print_table
from out_of_order_engines import ENGINES, Answer, answer, quality, truth
from out_of_order_events import LATEST, SECOND, Longs, Query, Stream, make_stream

OURS = ENGINES[:2]
SHARES = (0.0, 0.05, 0.15, 0.25, 0.35, 0.45)
SLACKS = (SECOND // 2, SECOND, 2 * SECOND, LATEST, 2 * LATEST)
LENGTHS = range(2, 9)
SHARE, LENGTH = 0.25, 3
"""The values in the experiments that vary something else."""


@dataclass(frozen=True)
class Measure:
    """The measures of one engine in one setting; shares are fractions of 1."""

    experiment: str
    engine: str
    events: int
    out_of_order: float
    k: float
    """How many seconds before the latest end an event may end without being late."""
    length: int
    durations: bool
    matches: int
    """The number of matches in all events, in order."""
    emitted: int
    late: int
    """The number of events that the engine does not match, as they arrive later than K."""
    precision: float
    recall: float
    retracted: float
    behind: float
    """Seconds of event time from the end of a match until it is emitted."""
    waited: float
    """The number of events that arrive between the last event of a match and its emission."""
    speed: float
    """Million events per second."""
    call: float
    """The milliseconds of a call with 1,000 events."""


def measured(experiment: str, stream: Stream, query: Query, slack: int) -> Iterator[Measure]:
    """One measure for each engine."""
    expected = truth(stream, query)
    for engine in ENGINES:
        found = answer(engine, stream, query, slack)
        if engine in OURS:
            check(found, stream, query, slack, expected)
        good = quality(found, expected, stream)
        yield Measure(
            experiment=experiment,
            engine=engine,
            events=len(stream.events),
            out_of_order=stream.out_of_order,
            k=slack / SECOND,
            length=query.length,
            durations=query.durations,
            matches=len(expected),
            emitted=int((found.rows.sign > 0).sum()),
            late=len(found.late),
            **good._asdict(),
            speed=len(stream.events) / found.seconds / 1e6,
            call=found.call * 1e3,
        )


def check(found: Answer, stream: Stream, query: Query, slack: int, expected: Longs) -> None:
    """Checks an answer of Cepheid: exactly the matches of the events that were not late, and no late events if K is
    large enough.
    """
    assert slack < LATEST or not len(found.late), "events are late although none is so far behind"
    if len(found.late):
        expected = truth(stream, query, without=found.late)
    assert np.array_equal(found.net, expected), "these are not the matches of the events in order"


def experiments(events: int) -> Iterator[Measure]:
    for share in SHARES:
        stream = make_stream(events, share, durations=True)
        yield from measured("out of order", stream, Query(LENGTH, durations=True), LATEST)
    stream = make_stream(events, SHARE, durations=True)
    for slack in SLACKS:
        yield from measured("K", stream, Query(LENGTH, durations=True), slack)
    for length in LENGTHS:
        yield from measured("length", stream, Query(length, durations=True), LATEST)
    for share in SHARES:
        stream = make_stream(events, share, durations=False)
        yield from measured("instants", stream, Query(LENGTH, durations=False), LATEST)


TITLES = {
    "out of order": ("more and more events out of order", "out_of_order"),
    "K": ("K, in seconds", "k"),
    "length": ("the number of events of a match", "length"),
    "instants": ("more and more out of order, of events that are instants", "out_of_order"),
}
"""Experiment → what varies in it, and the field of Measure that has it."""


def print_measures(found: Sequence[Measure]) -> None:
    head = ("", "engine", "precision", "recall", "retracted", "behind, s", "waited, arrivals", "late events")
    times = ("M events/s", "ms for 1,000 events", "matches emitted")
    for experiment, (title, field) in TITLES.items():
        rows = []
        for one in (one for one in found if one.experiment == experiment):
            x = getattr(one, field)
            shares = [f"{100 * part:.1f} %" for part in (one.precision, one.recall, one.retracted)]
            varied = f"{x:.0%}" if field == "out_of_order" else f"{x:g}"
            rows.append(
                (varied, one.engine, *shares, one.behind, one.waited, one.late, one.speed, one.call, one.emitted)
            )
        print_table(f"{title[0].upper()}{title[1:]}", (*head, *times), rows)


def save(found: Sequence[Measure], folder: Path) -> None:
    from out_of_order_figures import draw

    folder.mkdir(parents=True, exist_ok=True)
    rows = [asdict(one) for one in found]
    (folder / "out_of_order.json").write_text(json.dumps({"machine": machine(), "measures": rows}, indent=1) + "\n")
    with (folder / "out_of_order.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    draw(rows, folder / "out_of_order.png")
    print(f"\nwritten to {folder}: out_of_order.csv, .json and .png")


def main(arguments: Iterable[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Intervals out of order, beside simpler engines")
    parser.add_argument("--events", "--rows", type=int, default=1_000_000, help="of a stream (default 1,000,000)")
    parser.add_argument("--quick", action="store_true", help="5,000 events, in less than a minute")
    parser.add_argument("--out", type=Path, help="a folder for the measures and the drawing")
    asked = parser.parse_args(None if arguments is None else [*arguments])
    print(machine())
    found = list(experiments(5_000 if asked.quick else asked.events))
    print_measures(found)
    if asked.out is not None:
        save(found, asked.out)


if __name__ == "__main__":
    main()
