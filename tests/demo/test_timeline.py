"""The picture of a chain: it shows what happened, loads nothing, and marks values that were not recorded."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from cepheid.demo import timeline as t
from cepheid.demo.draw import draw_chain
from cepheid.demo.timeline import Chain, Flight


def at(hour: int, minute: int = 0) -> datetime:
    """A time on 27 February 2013 in New York, five hours behind UTC; hours above 23 are on the next day."""
    return datetime(2013, 2, 27, 5, tzinfo=UTC) + timedelta(hours=hour, minutes=minute)


def flight(number: int, dest: str, planned: datetime, delay: int, length: int) -> Flight:
    left = planned + timedelta(minutes=delay)
    return Flight(
        carrier="B6",
        flight=number,
        origin="JFK",
        dest=dest,
        scheduled_at=planned,
        departed_at=left,
        due_at=planned + timedelta(minutes=length),
        arrived_at=left + timedelta(minutes=length),
        dep_delay=delay,
        arr_delay=delay,
    )


CHAIN = Chain(
    "N228JB",
    (flight(219, "CLT", at(8), 237, 120), flight(66, "BUF", at(13), 259, 83), flight(139, "RSW", at(16, 58), 280, 189)),
)


def test_page_is_self_contained() -> None:
    """The page is well-formed, has one inline SVG, and refers to no external resources."""
    page, _ = draw_chain(CHAIN)
    svg = ET.fromstring(page[page.index("<svg") : page.index("</svg>") + len("</svg>")])  # noqa: S314 (we wrote it)
    assert svg.get("role") == "img"
    assert not any(word in page for word in ("http", "url(", "@import", "<script", "src="))


def test_page_says_what_happened() -> None:
    page, _ = draw_chain(CHAIN)
    assert "<title>N228JB: one late arrival, then 2 more late departures</title>" in page
    assert "27 February 2013, New York&#x27;s clock." in page
    for words in ("B6 219", "JFK → CLT", "leaves 3 h 57 min late", "lands 4 h 40 min late", "28 February"):
        assert words in page
    assert "departure: planned 08:00, real 11:57 (3 h 57 min late)" in page


def test_bars_lie_at_their_times() -> None:
    """The left edge of a bar is at the departure's place on the axis."""
    axis = t.axis_of(CHAIN)
    assert (t.clock(axis.start), t.clock(axis.end)) == ("07:00", "02:00")
    assert axis.fraction(at(16, 30)) == 0.5


def test_axis_is_even_when_clocks_change() -> None:
    """On the night of 10 March the hour from 2 to 3 does not exist; the ticks are still equally far apart."""
    night = datetime(2013, 3, 10, 5, tzinfo=UTC)
    chain = Chain("N1", (flight(1, "CLT", night, 40, 60), flight(2, "CLT", night + timedelta(hours=3), 40, 60)))
    ticks = t.axis_of(chain).ticks()
    assert [f"{tick:%H}" for tick in ticks] == ["23", "00", "01", "03", "04", "05", "06"]


def test_unknown_arrival_is_marked() -> None:
    """A flight without a recorded arrival is drawn with its planned duration, and the page says that the arrival is
    unknown.
    """
    lost = replace(CHAIN.flights[2], arrived_at=None, arr_delay=None)
    page, _ = draw_chain(replace(CHAIN, flights=(*CHAIN.flights[:2], lost)))
    assert "arrival not recorded" in page
    assert "arrival: planned 20:07, real unknown (not recorded)" in page
    assert t.reality(lost)[1] - lost.departed_at == timedelta(minutes=189)


@pytest.mark.parametrize(
    ("minutes", "words"),
    [
        (257, "4 h 17 min late"),
        (60, "1 h late"),
        (5, "5 min late"),
        (-12, "12 min early"),
        (0, "on time"),
        (None, "not recorded"),
    ],
)
def test_delays_in_words(minutes: int | None, words: str) -> None:
    assert t.lateness(minutes) == words


def test_text_from_the_data_is_escaped() -> None:
    page, _ = draw_chain(replace(CHAIN, tailnum="<b>&"))
    assert "<b>" not in page
    assert "&lt;b&gt;&amp;" in page


def test_png() -> None:
    """The image is a PNG 1,800 pixels wide, and taller for more flights."""
    sizes = []
    for flights in (CHAIN.flights[:2], CHAIN.flights):
        _, image = draw_chain(replace(CHAIN, flights=flights))
        assert image[:8] == b"\x89PNG\r\n\x1a\n"
        sizes.append((int.from_bytes(image[16:20]), int.from_bytes(image[20:24])))
    assert sizes[0][0] == sizes[1][0] == 1_800
    assert sizes[0][1] < sizes[1][1]
