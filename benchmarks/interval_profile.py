"""Where the time of interval patterns goes: the parts of `detect` and of an `IntervalMatcher` over the same events.

python benchmarks/interval_profile.py [--rows 1000000]

Nanoseconds of processor time per event, with the profiler's own time, so the sum is greater than without it. Each part
is the time of the functions named in PARTS with all that they call, without that of parts within it.
"""

from __future__ import annotations

import cProfile
import pstats
import time
from collections.abc import Callable, Iterator, Mapping

from measuring import machine, print_table, rows_wanted

from intervals import FEW, live, shared_events, tables

PARTS: Mapping[str, tuple[tuple[str, str], ...]] = {
    "read and lift": (("prepare.py", "lifted"), ("detect.py", "batches_as_they_come"), ("service.py", "_batch")),
    "order": (("matcher.py", "in_order_of_content"),),
    "working set": (("matcher.py", "_add"), ("matcher.py", "forget")),
    "kernel": (("step.py", "arrive"),),
    "emitted, in order": (("kernel.py", "_take_rows"), ("kernel.py", "_all_emitted")),
    "rows": (("matcher.py", "_placed_rows"),),
    "ids": (("rows.py", "_hashes"), ("ids.py", "identified")),
}
"""Part → the file and name of its functions. Ids are a part of rows."""


def parts(work: Callable[[], object], events: int) -> Iterator[float]:
    """Nanoseconds per event of each part, and of the rest."""
    profile = cProfile.Profile(time.process_time)
    profile.enable()
    work()
    profile.disable()
    found = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    total = sum(own for _, _, own, _, _ in found.values())
    seconds = dict.fromkeys(PARTS, 0.0)
    for part, functions in PARTS.items():
        for (path, _, name), (_, _, _, cumulative, _) in found.items():
            if any(path.endswith(file) and name == wanted for file, wanted in functions):
                seconds[part] += cumulative
    seconds["rows"] -= seconds["ids"]
    yield from (1e9 * one / events for one in seconds.values())
    yield 1e9 * (total - sum(seconds.values())) / events


def main() -> None:
    rows = rows_wanted("Where the time of interval patterns goes", default=1_000_000)
    print(machine())
    lines = []
    for share in (0.0, 0.45):
        table = shared_events(rows, disordered=share)
        forms = {"table": tables(FEW, table)} if not share else {}
        forms |= {f"live, {how}": live(f"{FEW} CONSISTENCY {how}", table) for how in ("conservative", "realtime")}
        for form, work in forms.items():
            work()()  # what is done once
            lines.append((form, f"{share:.0%}", *parts(work(), len(table))))
    print_table(f"Nanoseconds per event, {rows:,} events", ("form", "out of order", *PARTS, "rest"), lines)


if __name__ == "__main__":
    main()
