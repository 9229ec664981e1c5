"""`cepheid demo`: delays that propagate through New York's flights of 2013, found on Spark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from cepheid.demo import timeline as t
from cepheid.demo.chains import CarrierCount, count_by_carrier, longest_chains
from cepheid.demo.draw import draw_chain
from cepheid.demo.flights import (
    FLIGHT_COLUMNS,
    FlightCounts,
    count_flights,
    departures,
    read_flights,
    unpack_flights,
)
from cepheid.demo.near import NearChains, near_chains
from cepheid.demo.pattern import LATE_CHAIN
from cepheid.demo.timeline import Chain, Flight
from cepheid.detect import detect
from cepheid.hosts.spark.session import local_session

_SHOWN = 5


class _Steps:
    """Shows the steps of the work if the console is a terminal, and records how long each step took."""

    def __init__(self, console: Console) -> None:
        columns = (SpinnerColumn(finished_text="[green]✓"), TextColumn("{task.description}"), TimeElapsedColumn())
        self.progress = Progress(*columns, console=console, disable=not console.is_terminal)
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, words: str) -> Iterator[None]:
        task = self.progress.add_task(words, total=1)
        start = perf_counter()
        yield
        self.seconds[words] = perf_counter() - start
        self.progress.update(task, completed=1)


def run_demo(output: Path, console: Console) -> None:
    """Finds the late chains, prints them, and writes matches.parquet, chain.html and chain.png into `output`.

    Files of an earlier run are replaced. If a Spark session is already active, it is used and left running.
    """
    output.mkdir(parents=True, exist_ok=True)
    steps = _Steps(console)
    with TemporaryDirectory() as folder, steps.progress:
        with steps.step("Start Spark"):
            spark = local_session("cepheid demo")
        with steps.step("Read the flights"):
            flights = read_flights(spark, unpack_flights(Path(folder)))
            counts = count_flights(flights)
        with steps.step("Detect late chains, write them to Parquet"):
            events = departures(flights)
            columns = list(FLIGHT_COLUMNS)
            matches = detect(events, LATE_CHAIN, key="tailnum", time="departed_at", columns=columns)
            matches.write.mode("overwrite").parquet(str(output / "matches.parquet"))
        with steps.step("Sum up"):
            written = spark.read.parquet(str(output / "matches.parquet"))
            chains = longest_chains(written, _SHOWN)
            carriers = count_by_carrier(written, events)
        with steps.step("Ask what stopped the others"):
            near = near_chains()
        with steps.step("Draw the longest chain"):
            html, png = draw_chain(chains[0])
            (output / "chain.html").write_text(html, encoding="utf-8")
            (output / "chain.png").write_bytes(png)
    _print_events(console, counts)
    _print_chains(console, chains, sum(carrier.chains for carrier in carriers))
    _print_carriers(console, carriers)
    _print_near(console, near)
    _print_files(console, output, steps.seconds)


def _print_events(console: Console, counts: FlightCounts) -> None:
    console.print(
        f"[bold]{counts.flights:,} flights[/]. The events are {counts.departures:,} departures of {counts.aircraft:,} "
        "aircraft.\n"
        f"Left out: {counts.cancelled:,} cancelled flights, which have no departure and so no event time "
        f"({counts.without_tailnum:,} of them have no aircraft either).\n"
        f"In part: {counts.departures_without_arr_delay:,} departures without an arrival delay (diverted, or not "
        "recorded) can be late departures in a chain, not its start.\n"
        "Only departures from EWR, JFK and LGA are in the data: the next flight of an aircraft is its next from there.",
        highlight=False,
    )
    console.print()


def _print_chains(console: Console, chains: list[Chain], count: int) -> None:
    table = Table(
        title=f"The {len(chains)} longest of {count:,} late chains (times in New York)",
        title_justify="left",
        box=box.SIMPLE_HEAD,
    )
    table.add_column("aircraft", style="bold")
    table.add_column("first departure")
    table.add_column("flights, minutes late")
    for chain in chains:
        flights = "\n".join([*(_flight_words(flight) for flight in chain.flights), ""])
        table.add_row(escape(chain.tailnum), f"{t.local(chain.flights[0].departed_at):%Y-%m-%d %H:%M}", flights)
    console.print(table)


def _flight_words(flight: Flight) -> str:
    return f"{t.label(flight):<8} {t.clock(flight.departed_at)}  {t.route(flight)} [red]{flight.dep_delay:+5d}[/]"


def _print_carriers(console: Console, carriers: list[CarrierCount]) -> None:
    title = "Late chains by carrier (longest: in flights; per 1,000: of its departures)"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("", style="bold")
    table.add_column("carrier", no_wrap=True)
    for heading in ("chains", "longest", "departures", "per 1,000"):
        table.add_column(heading, justify="right")
    for carrier in carriers:
        rate = f"{1_000 * carrier.chains / carrier.departures:.1f}"
        longest = str(carrier.longest) if carrier.chains else ""
        chains, left = f"{carrier.chains:,}", f"{carrier.departures:,}"
        table.add_row(carrier.carrier, escape(carrier.name), chains, longest, left, rate)
    console.print(table)


def _print_near(console: Console, near: NearChains) -> None:
    title = f"{near.flights:,} late flights nearly began a chain: one change would do, and some have a choice"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    table.add_column("change")
    for heading in ("flights", "by at most 15 min"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("nearest")
    for one in near.stopped:
        nearly = f"{one.nearly:,}" if one.nearly else ""
        table.add_row(escape(one.change), f"{one.flights:,}", nearly, escape(one.nearest))
    console.print(table)


def _print_files(console: Console, output: Path, seconds: dict[str, float]) -> None:
    console.print("Written:", style="bold")
    for name, what in (
        ("matches.parquet", "all chains"),
        ("chain.html", "the first chain above"),
        ("chain.png", "the same"),
    ):
        console.print(f"  {output / name}  ({what})", highlight=False, soft_wrap=True, markup=False)
    took = ", ".join(f"{words[0].lower()}{words[1:]} {taken:.1f} s" for words, taken in seconds.items())
    console.print(f"\nTime: {took}; together {sum(seconds.values()):.1f} s", highlight=False)
