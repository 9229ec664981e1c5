"""Zhou et al.'s experiments with intervals out of order, on Cepheid's engine and on simpler ones.

python benchmarks/out_of_order.py [--events 100000] [--seeds 5] [--quick] [--out out/out_of_order]

A thousand generators emit events of four types; some of the events are delayed on their way. The experiments vary the
share of events that arrive out of order, with instants and with events that have a duration, how many events a buffer
has (K), how long the engines wait for late events, and the number of events of a match. The engines are in
`out_of_order_engines.py`, their events in `out_of_order_events.py`, the figures of the paper that an experiment repeats
in `out_of_order_figures.py`.
Measured are the latency of matches, the rate of compensation (insertions that are retracted), the time, accuracy,
precision and recall; these compare with the matches in the same events when they arrive in order. Both consistencies of
Cepheid must find exactly those matches, or those of the events that were not late; otherwise the program fails.

Each setting is repeated with streams of several seeds. Tables of means and standard deviations are printed; `--out` is
a folder for all measures as CSV and JSON, and for the drawing.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from measuring import machine
from out_of_order_engines import ENGINES, Answer, answer, quality, truth
from out_of_order_events import LATEST, SECOND, Longs, Query, Stream, make_stream

OURS = ENGINES[:2]
SHARES = (0.0, 0.05, 0.15, 0.25, 0.35, 0.45)
SLACKS = (SECOND // 2, SECOND, 2 * SECOND, LATEST, 2 * LATEST)
BUFFERS = (0, 1, 2, 5, 10, 20, 50, 100, 500, 1_000)
LENGTHS = range(2, 9)
SHARE, LENGTH = 0.25, 3
"""The values in the experiments that vary something else."""


@dataclass(frozen=True)
class Setting:
    """What an experiment varies."""

    experiment: str
    share: float
    length: int
    durations: bool
    slack: int = LATEST
    """How many microseconds before the latest end an event may end without being late."""
    buffer: int | None = None
    """How many of the latest events are not late, in place of the slack."""


@dataclass(frozen=True)
class Measure:
    """The measures of one engine in one setting; shares are fractions of 1."""

    experiment: str
    engine: str
    seed: int
    events: int
    out_of_order: float
    """The share that was asked for; that of a stream differs a little."""
    k: float
    """How many seconds before the latest end an event may end without being late."""
    buffer: int
    """How many of the latest events are not late; -1: K decides."""
    length: int
    durations: bool
    matches: int
    """The number of matches in all events, in order."""
    emitted: int
    late: int
    """The number of events that the engine does not match, as they arrive later than K."""
    precision: float
    recall: float
    accuracy: float
    """The share of right insertions among all, also those that are retracted."""
    retracted: float
    behind: float
    """Seconds of event time from the end of a match until it is emitted, or retracted."""
    waited: float
    """The number of events that arrive between the last event of a match and its emission."""
    seconds: float
    """Seconds of processor time per million events."""
    call: float
    """The milliseconds of a call with 1,000 events."""


def settings() -> Iterator[Setting]:
    for durations, name in ((False, "instants"), (True, "durations")):
        yield from (Setting(name, share, LENGTH, durations) for share in SHARES)
    yield from (Setting("buffer", SHARE, LENGTH, durations=True, buffer=buffer) for buffer in BUFFERS)
    yield from (Setting("K", SHARE, LENGTH, durations=True, slack=slack) for slack in SLACKS)
    yield from (Setting("length", SHARE, length, durations=False) for length in LENGTHS)


def measured(setting: Setting, stream: Stream, seed: int) -> Iterator[Measure]:
    """One measure for each engine."""
    query = Query(setting.length, durations=setting.durations)
    expected = truth(stream, query)
    for engine in ENGINES:
        found = answer(engine, stream, query, setting.slack, setting.buffer)
        if engine in OURS:
            check(found, stream, query, setting.slack if setting.buffer is None else 0, expected)
        yield Measure(
            experiment=setting.experiment,
            engine=engine,
            seed=seed,
            events=len(stream.events),
            out_of_order=setting.share,
            k=setting.slack / SECOND,
            buffer=-1 if setting.buffer is None else setting.buffer,
            length=setting.length,
            durations=setting.durations,
            matches=len(expected),
            emitted=int((found.rows.sign > 0).sum()),
            late=len(found.late),
            **quality(found, expected, stream)._asdict(),
            seconds=1e6 * found.seconds / len(stream.events),
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


def experiments(events: int, seeds: int) -> Iterator[Measure]:
    for seed in range(1, seeds + 1):
        streams: dict[tuple[float, bool], Stream] = {}
        for setting in settings():
            of = setting.share, setting.durations
            if of not in streams:
                streams[of] = make_stream(events, setting.share, durations=setting.durations, seed=seed)
            yield from measured(setting, streams[of], seed)


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
    parser.add_argument("--events", "--rows", type=int, default=100_000, help="of a stream (default 100,000)")
    parser.add_argument("--seeds", type=int, default=5, help="streams of each setting (default 5)")
    parser.add_argument("--quick", action="store_true", help="2,000 events and two seeds, in about a minute")
    parser.add_argument("--out", type=Path, help="a folder for the measures and the drawing")
    asked = parser.parse_args(None if arguments is None else [*arguments])
    print(machine())
    found = list(experiments(*((2_000, 2) if asked.quick else (asked.events, asked.seeds))))
    from out_of_order_figures import print_figures

    print_figures([asdict(one) for one in found])
    if asked.out is not None:
        save(found, asked.out)


if __name__ == "__main__":
    main()
