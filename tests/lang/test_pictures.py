"""What notebooks show of patterns."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import pytest

from cepheid import OccurrencePattern, Pattern, Skip
from cepheid.intervals import interval_pattern
from cepheid.lang.pictures.box import Box
from cepheid.lang.pictures.html import html_of
from cepheid.lang.pictures.mermaid import mermaid_of

CHAIN = (
    Pattern.begin("late", name="chain")
    .where("delay > 45 AND carrier <> '<b>'")
    .next("legs")
    .where("delay > 30")
    .or_where("cancelled")
    .one_or_more()
    .consecutive()
    .not_followed_by("repair")
    .followed_by_any(Pattern.begin("rest").next("go").times(2, 3))
    .begin_without("calm", within="1 hour")
    .within("12 hours")
    .max_gap("2 hours")
    .skip(Skip.past_last_event())
)
OCCURRENCES = OccurrencePattern.of("(?x:a[v > 1]; (b | c)_5min) - (d & e + 3s)").policy("recent").named("visit")
INTERVALS = interval_pattern(
    "EVENT SEQ(Stop x, Alarm y) RELATE x before y ORDER end(x) < start(y) "
    "WITHOUT (Repair z gap(x | y) WHERE z.u = x.u) WHERE x.u = y.u WITHIN 1 hour REALTIME 1"
).named("stops")
PATTERNS = [CHAIN, OCCURRENCES, INTERVALS]


class _Page(HTMLParser):
    """Checks that tags are closed in order; collects the text of the page and its tags."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.text: list[str] = []
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002
        self.tags.add(tag)
        if tag != "br":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_stages_are_a_row_of_boxes() -> None:
    """A picture of stages has each stage with its quantifier and conditions, what leads to it, and the window."""
    calm, late, legs, repair, group = CHAIN.picture.inner
    assert calm == Box("calm", ("in the 1 hour before the first event", "any event"), forbids=True)
    assert late == Box("late", ("where delay > 45 AND carrier <> '<b>'",), arrow="begin")
    assert legs == Box("legs", ("1 event or more", "consecutive", "where delay > 30", "or cancelled"), arrow="next")
    assert repair == Box("repair", ("any event",), arrow="not followed by", forbids=True)
    inner = (Box("rest", ("any event",)), Box("go", ("2 to 3 events", "any event"), arrow="next"))
    assert group == Box("group", (), inner, arrow="followed by any")
    gap = "each event less than 2 hours after the one before it"
    assert CHAIN.picture.lines == ("within 12 hours", gap, "skip past_last_event")


def test_occurrences_are_nested_boxes() -> None:
    """A picture of occurrences has each operator around its operands, and what forbids is marked."""
    either = Box("either", inner=(Box("b"), Box("c")))
    x = Box("filter", ("where v > 1",), (Box("?x", inner=(Box("a"),)),))
    sequence = Box("sequence", inner=(x, Box("within 5 minutes", inner=(either,), arrow="then")))
    forbidden = Box("both", inner=(Box("d"), Box("plus 3 seconds", inner=(Box("e"),))), forbids=True)
    without = Box("without", inner=(sequence, forbidden))
    assert OCCURRENCES.picture == Box("visit", ("policy recent",), (without,))


def test_declared_types_and_conditions_of_minus_are_lines() -> None:
    """Declared types, and the condition under which minus forbids, are written as in the text of the pattern."""
    pattern = OccurrencePattern.of("big = a[v > 1]\n(big -[x.v = 1] c)")
    assert pattern.picture.lines == ("big = a[v > 1]",)
    assert pattern.picture.inner == (Box("without", ("if x.v = 1",), (Box("big"), Box("c", forbids=True))),)


def test_intervals_are_boxes_of_variables() -> None:
    """A picture of intervals has a box for each variable, what forbids a match, and all relations and conditions."""
    forbidden = Box("z", ("Repair", "gap(x | y)", "where z.u = x.u"), forbids=True)
    assert INTERVALS.picture.inner == (Box("x", ("Stop",)), Box("y", ("Alarm",), arrow="then"), forbidden)
    lines = ("x before y", "end(x) < start(y)", "where x.u = y.u", "within 1 hour", "consistency realtime")
    assert INTERVALS.picture.lines == lines


def test_trees_of_intervals_are_lines() -> None:
    """A hierarchy of relations is a line; without an order of events there are no arrows."""
    picture = interval_pattern("EVENT PAL((A a overlap B b) before C c)").picture
    assert picture.lines == ("((a overlap b) before c)",)
    assert [box.arrow for box in picture.inner] == [None, None, None]


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.name)
def test_html_is_whole_and_stands_alone(pattern: Any) -> None:
    """HTML has all text of the picture, escaped; it has no script, no style sheet and no link, so that all notebooks
    show it.
    """
    page = _Page(pattern._repr_html_())
    assert page.tags <= {"div", "b", "br"}
    assert [text for text in page.text if text != "→"] == [*_texts(pattern.picture)]
    assert not re.search(r"https?:|url\(|#[0-9a-f]{3}", pattern._repr_html_())


def _texts(box: Box) -> list[str]:
    inner = [text for one in box.inner for text in ([one.arrow] if one.arrow is not None else []) + _texts(one)]
    return [box.title, *inner, *box.lines]


def test_what_forbids_is_dashed() -> None:
    """Boxes for events that must not come have a dashed border in HTML and in Mermaid."""
    picture = Box("all", inner=(Box("a"), Box("no", forbids=True)))
    assert [html_of(picture).count(border) for border in ("1px solid", "1px dashed")] == [2, 1]
    assert "    style n_1 stroke-dasharray: 4" in mermaid_of(picture)


def test_mermaid() -> None:
    """The Mermaid diagram has the boxes as nodes, groups as subgraphs, and the arrows with their words."""
    pattern = Pattern.begin("a", name="two").where('x < "y"').next(Pattern.begin("b").followed_by("c")).within("1 hour")
    assert mermaid_of(pattern.picture).split("\n") == [
        "flowchart LR",
        '    subgraph n["two<br/>within 1 hour"]',
        "        direction LR",
        '        n_0["a<br/>where x #lt; #quot;y#quot;"]',
        '        subgraph n_1["group"]',
        "            direction LR",
        '            n_1_0["b<br/>any event"]',
        '            n_1_1["c<br/>any event"]',
        '            n_1_0 -->|"followed by"| n_1_1',
        "        end",
        '        n_0 -->|"next"| n_1',
        "    end",
    ]


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.name)
def test_notebooks_get_all_types(pattern: Any) -> None:
    """A notebook gets the calls as text, HTML, and Mermaid under the type that JupyterLab draws."""
    assert pattern._repr_mimebundle_() == {
        "text/plain": repr(pattern),
        "text/html": pattern._repr_html_(),
        "text/vnd.mermaid": mermaid_of(pattern.picture),
    }
