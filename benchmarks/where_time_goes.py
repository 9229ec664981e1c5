"""Where a second of processor time goes on each host: reading and lifting, order, matching, ids, rows, Spark.

python benchmarks/where_time_goes.py --rows 3000000 --out out

A sampling profiler (py-spy) looks 200 times a second at each Python thread that runs, in the host's process and in
Spark's workers. A sample belongs to the innermost of our functions, or of PySpark's, that is named in PARTS. The
processor time of Java is read from the operating system.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from matplotlib.figure import Figure
from measuring import machine, print_table
from one_host import HOSTS

PATTERNS = ("P1", "P4", "P8")
SECONDS = 12
PARTS = {
    "lift": ("cepheid/hosts/duckdb/",),
    "order": (
        "hosts/in_process/sort.py",
        "hosts/spark/batch/blocks/order.py",
        "kernel/order.py",
        "kernel/order_of_columns.py",
        "events/order.py",
        "take (cepheid/hosts/in_process/",
    ),
    "blocks": (
        "hosts/spark/batch/blocks/",
        "hosts/spark/stream/packing.py",
        "hosts/shards/arrow_stream.py",
        "events/narrow.py",
    ),
    "ids": ("output/ids.py", "events/identity.py", "kernel/siphash.py", "kernel/hexadecimal.py"),
    "rows": ("cepheid/output/",),
    "match": ("cepheid/kernel/", "cepheid/matchers/", "cepheid/hosts/spark/stream/", "cepheid/hosts/shards/"),
    "between Python and Spark": ("pyspark/", "py4j/"),
}
"""Part → what a frame of its functions contains. The first that fits counts."""
REST, JAVA = "rest", "Java"
COLUMNS = (*PARTS, REST, JAVA)
_COLORS = ("#4e79a7", "#a0cbe8", "#f28e2b", "#ffbe7d", "#59a14f", "#b6992d", "#bab0ac", "#d37295", "#86bcb6")


class Spent(NamedTuple):
    """What one host does in a second of processor time."""

    host: str
    pattern: str
    shares: dict[str, float]
    """Part → its share; together they are 1."""


def measure(host: str, pattern: str, rows: int) -> Spent:
    """Runs the host, and looks at it once it is warm."""
    program = [sys.executable, str(Path(__file__).with_name("one_host.py")), host, pattern, "--rows", str(rows)]
    with subprocess.Popen(program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        if not any(line == "warm\n" for line in running.stdout):
            raise SystemExit(f"{host}, {pattern}: the host ended")
        before = _processor_times(running.pid)
        samples = Counter(map(_part, _stacks(running.pid)))
        after = _processor_times(running.pid)
        running.communicate()  # its input ends, and with it the work
    gone = {True: 0.0, False: 0.0}
    for (pid, name), seconds in after.items():
        gone[name == "java"] += seconds - before.get((pid, name), 0.0)
    java, python = gone[True], gone[False]
    each = {part: samples[part] / max(1, samples.total()) * python for part in (*PARTS, REST)} | {JAVA: java}
    return Spent(host, pattern, {part: seconds / (java + python) for part, seconds in each.items()})


def _stacks(pid: int) -> Iterator[Sequence[str]]:
    """The frames of each sample, the outermost first."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stacks"
        tool = str(Path(sys.executable).with_name("py-spy"))
        options = ["--subprocesses", "--nonblocking", "--rate", "200", "--duration", str(SECONDS), "--format", "raw"]
        subprocess.run(
            [tool, "record", *options, "--output", str(path), "--pid", str(pid)], check=True, capture_output=True
        )
        for line in path.read_text("utf-8").splitlines():
            frames, _, count = line.rpartition(" ")
            for _ in range(int(count)):
                yield frames.split(";")


def _part(frames: Sequence[str]) -> str:
    for frame in reversed(frames):
        for part, texts in PARTS.items():
            if any(text in frame for text in texts):
                return part
    return REST


def _processor_times(root: int) -> dict[tuple[int, str], float]:
    """The seconds of the process and of all that it has started, by number and name."""
    found, parents = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = path.read_text("utf-8")
        except OSError:  # it has ended
            continue
        name, fields = text[text.index("(") + 1 : text.rindex(")")], text[text.rindex(")") + 2 :].split()
        pid = int(path.parent.name)
        parents[pid] = int(fields[1])
        found[pid, name] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return {one: seconds for one, seconds in found.items() if root in _line(one[0], parents)}


def _line(pid: int, parents: dict[int, int]) -> Iterator[int]:
    """The process, what has started it, and so on."""
    while pid:
        yield pid
        pid = parents.get(pid, 0)


def draw(spent: Sequence[Spent], path: Path) -> None:
    """One bar for each host and pattern."""
    drawing = Figure(figsize=(9, 0.45 * len(spent) + 1.4), layout="constrained")
    axes = drawing.subplots()
    names = [f"{one.host}, {one.pattern}" for one in spent]
    left = [0.0] * len(spent)
    for part, color in zip(COLUMNS, _COLORS, strict=True):
        shares = [one.shares[part] for one in spent]
        axes.barh(names, shares, left=left, color=color, label=part)
        left = [begin + share for begin, share in zip(left, shares, strict=True)]
    axes.invert_yaxis()
    axes.set(xlim=(0, 1), xlabel="of one second of processor time")
    drawing.legend(loc="outside upper center", ncols=len(COLUMNS), frameon=False, fontsize="small")
    drawing.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--out", type=Path, default=Path("out"), help="the folder for the drawing")
    given = parser.parse_args()
    print(machine())
    spent = [measure(host, pattern, given.rows) for host in HOSTS for pattern in PATTERNS]
    rows = [(one.host, one.pattern, *(one.shares[part] for part in COLUMNS)) for one in spent]
    print_table(f"Of one second of processor time, {given.rows:,} events", ("host", "pattern", *COLUMNS), rows)
    given.out.mkdir(parents=True, exist_ok=True)
    draw(spent, given.out / "where_time_goes.png")


if __name__ == "__main__":
    main()
