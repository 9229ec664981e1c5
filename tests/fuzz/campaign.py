"""What is mutated, and what must come of it: a result, or one of Cepheid's errors."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pyarrow as pa
from scripts.stored_snapshots import AFTER, BEFORE, KINDS, MORE, OF_STAGES, OPEN, events_of, matcher_of, with_ends
from tests.fuzz.checkpoints import prepare_streams, try_checkpoint
from tests.fuzz.mutations import mutated_bytes, mutated_snapshot, mutated_text

from cepheid import IntervalPattern, Matcher, OccurrencePattern, Pattern, detect, errors, why
from cepheid.host import open_host
from cepheid.lang.documents import pattern_from_text, pattern_to_yaml
from cepheid.lang.sql.parser import parse_expression
from cepheid.matchers.snapshot import from_bytes, to_bytes
from cepheid.plan.conditions.script_functions import SCRIPT_FUNCTIONS
from cepheid.plan.stages.explain import explain_pattern

ERRORS = tuple(
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, Exception) and kind.__module__ == errors.__name__
)
"""Cepheid's own."""
ACCEPTED, REFUSED = "accepted", "refused"
EXAMPLES = Path(__file__).parents[2] / "examples"
NUMBERS = (
    "0",
    "-1",
    "3",
    "1e400",
    "9999999999999999999999",
    "0.1",
    "1e-300",
    "1e40BD",
    "5e-39BD",
    ".5e",
    "127Y",
    "2147483647",
    "-9223372036854775808L",
)
SYMBOLS = (
    "(",
    ")",
    ",",
    ".",
    "'",
    "`",
    "$",
    "$x",
    "\\",
    ":",
    "- ",
    "[",
    "]",
    "{",
    "}",
    "\n",
    "\t",
    "é",
    "\x00",
    "|",
    "!",
    "?",
    "*",
    "'\\'",
)
CONDITIONS = (
    "n > a.n AND text = 'x'",
    "price / nullif(a.price, 0) > 1.5 OR n IS NULL",
    "at - a.at < INTERVAL 5 MINUTES AND day > a.day",
    "concat(text, a.text) LIKE 'x%' AND length(text) BETWEEN 1 AND a.n",
    "round(price - a.price, 2) = floor(n / (a.n + 1)) * 0.5D",
    "CASE WHEN text IN ('x', 'y') THEN hour(coalesce(a.at, at)) ELSE n END > count(b) + sum(b.n)",
    "stddev(b.price) < avg(b.price) AND max(b.text) >= text AND count(DISTINCT b.n) < 3",
    "substring(text, 1, n) = upper(a.text) OR date_trunc('day', at) = DATE '2026-01-01'",
    "items[0] = a.n AND size(items) > 1 AND array_contains(items, a.n)",
    "length(text) = n OR try_cast(a.text AS DOUBLE) IS NULL AND regexp_replace(text, 'x+', '') <> ''",
    "amount * 1.1 > a.amount AND abs(amount - a.amount) % 3 = 1 AND amount IN (1, 2.5)",
    "at > '2026-01-01' OR a.day <= '2026-01-02 00:00' AND a.at BETWEEN '2026-01-01' AND greatest(at, a.at)",
    "a.at IN ('2026-01-01', text) OR coalesce(a.day, day, '2026-01-01') = '2026-01-02' OR max(b.at) > '2026-1-1 5:00'",
    "day > a.day + INTERVAL 1 DAY OR at < a.at - INTERVAL 1 MONTH OR a.day - INTERVAL 5 HOURS < at - a.gap",
    "day - a.day > gap * 2 OR a.day + gap > at AND nullif(day, '2026-01-01') IS NULL OR n > '3' OR a.n < a.text",
    "last(b.n, 1) < first(b.n) AND greatest(n, a.n, 3) = least(n, nvl(a.n, 0))",
)
INTERVALS = (
    "EVENT PAL((A a overlap B b) (!D d) before C c) WHERE a.user = b.user WITHIN 10 min REALTIME 1",
    "EVENT SEQ(open o, (!pay p WHERE p.account = o.account), close c) WITHIN 1 hour CONSISTENCY earliest",
    "EVENT PAL(A a, B b) RELATE a contains b, a before b ORDER start(a) < start(b) = end(a) WITHOUT (D d gap(a | b))",
)
OCCURRENCES = (
    "((open; close) - pay) | (open + 10s; close)",
    "(?o:open; ?p:pay; ?c:close)_1h[p.amount > $least AND c.account = o.account]",
    "T = Buy[price > 3] (T & (A | B; C)) - (D + {2 days}) _ 5m",
)
WORDS = (
    *NUMBERS,
    *SYMBOLS,
    *SCRIPT_FUNCTIONS,
    *(
        "a",
        "b",
        "a.n",
        "n",
        "text",
        "price",
        "at",
        "day",
        "items",
        "amount",
        "NULL",
        "TRUE",
        "gap",
        "'2026-01-01'",
        "'2026-01-01 23:50'",
        "INTERVAL 1 DAY",
        "INTERVAL '1-2' YEAR TO MONTH",
        "INTERVAL",
        "MONTH",
        "DAY",
        "DATE",
        "TIMESTAMP",
    ),
    *(
        "CASE",
        "WHEN",
        "THEN",
        "ELSE",
        "END",
        "BETWEEN",
        "LIKE",
        "ESCAPE",
        "DISTINCT",
        "AS",
        "DECIMAL(38, 10)",
        "ARRAY<INT>",
        "IS",
        "IN",
        "NOT",
    ),
    *(
        "begin",
        "where",
        "times",
        "within",
        "stages",
        "name",
        "EVENT",
        "SEQ",
        "PAL",
        "overlap",
        "WITHIN",
        "WITHOUT",
        "ORDER",
        "1 month",
        "same day",
    ),
)
START = datetime(2026, 1, 1, 23, 30, tzinfo=UTC)
EVENTS = pa.table(
    {
        "n": pa.array([1, 2, None, -7, 3], pa.int32()),
        "at": [START + timedelta(minutes=20 * number) for number in range(5)],
        "day": pa.array([0, 1, None, 3, 20_000], pa.int32()).cast(pa.date32()),
        "text": ["x", "10", "", None, "xyé"],
        "price": [0.5, -0.0, float("nan"), None, 1e300],
        "amount": pa.array([None, Decimal(150), Decimal(-75), Decimal(999_999), Decimal(1)], pa.decimal128(8, 2)),
        "gap": pa.array([0, 1, None, -7, 90_000], pa.duration("s")).cast(pa.duration("us")),
        "items": pa.array([[1, 2], [], None, [None], [3]], pa.list_(pa.int64())),
    }
)


@cache
def documents() -> tuple[str, ...]:
    """Patterns of each kind as YAML."""
    interval = IntervalPattern.of(INTERVALS[0]).taxonomy("kind")
    occurrence = OccurrencePattern.of(OCCURRENCES[1]).taxonomy("kind").with_parameters(least=3)
    own = [pattern_to_yaml(pattern) for pattern in (interval, occurrence)]
    return (*own, *(path.read_text("utf-8") for path in sorted(EXAMPLES.glob("*.yaml"))))


def try_document(source: Random) -> None:
    """A document that is read is the same after it is written and read again."""
    text = mutated_text(source, source.choice(documents()), WORDS)
    pattern = pattern_from_text(text)
    assert pattern_from_text(pattern_to_yaml(pattern)) == pattern, text
    if isinstance(pattern, Pattern):
        explain_pattern(pattern)


def try_text(source: Random) -> None:
    """Queries of intervals, expressions of occurrences, and SQL."""
    read, texts = source.choice(
        [(IntervalPattern.of, INTERVALS), (OccurrencePattern.of, OCCURRENCES), (parse_expression, CONDITIONS)]
    )
    repr(read(mutated_text(source, source.choice(texts), WORDS)))


def try_condition(source: Random) -> None:
    """A condition is planned, lifted and evaluated, for a few events; one in eight is also explained."""
    text = mutated_text(source, source.choice(CONDITIONS), WORDS)
    pattern = Pattern.begin("a").followed_by_any("b").where(text).within("1 hour")
    try:
        detect(EVENTS, pattern, time="at")
        if source.randrange(8) == 0:
            found = why(EVENTS, pattern, time="at")
            repr((found.near_misses, found.trace()))
    except ERRORS:
        raise
    except Exception as error:
        error.add_note(text)
        raise


@cache
def _snapshot(kind: str) -> bytes:
    matcher = matcher_of(kind)
    matcher.process(with_ends(events_of(BEFORE if kind in OF_STAGES else [*BEFORE, *OPEN])))
    return matcher.snapshot()


def try_snapshot(source: Random) -> None:
    """A changed snapshot with a new digest is restored and goes on, or is refused at once or later."""
    kind = source.choice([*KINDS])
    before = _snapshot(kind)
    if source.randrange(8) == 0:
        changed = mutated_bytes(source, before)
    else:
        changed = to_bytes(mutated_snapshot(source, from_bytes(before)))
    matcher = matcher_of(kind)
    matcher.restore(changed)
    if isinstance(matcher, Matcher):
        matcher.partial_matches()
    events = with_ends(events_of(AFTER if kind in OF_STAGES else MORE))
    for first in range(len(events)):
        matcher.process(events.slice(first, 1))
    matcher.finish()
    matcher.snapshot()


@cache
def _stored() -> dict[str, bytes]:
    """The files of a host with open partial matches, by their paths."""
    with TemporaryDirectory() as folder:
        with closing(open_host(f"file://{folder}/host")) as host:
            host.input("bank", EVENTS.schema, time="at", lateness="0 seconds")
            host.deploy(Pattern.begin("a").followed_by("b").where("n > a.n + 100").within("9 hours"), input="bank")
            host.feed(EVENTS, input="bank")
        paths = [path for path in Path(folder).rglob("*") if path.is_file()]
        return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(paths)}


def try_store(source: Random) -> None:
    """A host whose files are changed opens and goes on, or says what is wrong."""
    changed = source.choice([path for path, content in _stored().items() if content])
    with TemporaryDirectory() as folder:
        for path, content in _stored().items():
            place = Path(folder, path)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(mutated_bytes(source, content) if path == changed else content)
        with closing(open_host(f"file://{folder}/host")) as host:
            host.advance_time(START + timedelta(hours=3), input="bank")


CAMPAIGNS: dict[str, Callable[[Random], None]] = {
    "documents": try_document,
    "texts": try_text,
    "conditions": try_condition,
    "snapshots": try_snapshot,
    "stores": try_store,
    "checkpoints": try_checkpoint,
}


def prepare() -> None:
    """Makes what is mutated, so that a problem with it is not taken for a refusal."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for document in documents():
            pattern_from_text(document)
        for kind in KINDS:
            _snapshot(kind)
        _stored()
        prepare_streams()


def outcome(name: str, number: int, seed: int) -> str:
    """ACCEPTED or REFUSED, or what went wrong in other ways, with the last line of the code in which it did."""
    source = Random(f"{name} {seed} {number}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            CAMPAIGNS[name](source)
    except ERRORS:
        return REFUSED
    except Exception as error:  # noqa: BLE001 - any other exception is a finding
        return f"{type(error).__name__}: {error} {_place(error)} {getattr(error, '__notes__', '')}"
    return ACCEPTED


def _place(error: BaseException) -> str:
    trace = error.__traceback__
    place = ""
    while trace is not None:
        place, trace = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}", trace.tb_next
    return place


def run(name: str, cases: int, seed: int) -> tuple[Counter[str], list[str]]:
    """How many were accepted and refused, and the findings, each with its number."""
    prepare()
    counts: Counter[str] = Counter()
    findings: list[str] = []
    for number in range(cases):
        found = outcome(name, number, seed)
        if found in (ACCEPTED, REFUSED):
            counts[found] += 1
        else:
            findings.append(f"{name} {seed} {number}: {found}")
    return counts, findings
