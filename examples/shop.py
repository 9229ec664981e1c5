"""What the services of a shop are watched for, by the patterns of Vaculin and Sycara: in a log of a million events.

Prints how often each pattern is found in the complete log and while the log arrives, and how popular and how effective
the ways to a purchase are. docs/how_to/monitor_services.md explains it. In the folder of a clone:

    python -m examples.shop          # about a million events
    python -m examples.shop 50000    # fewer
"""

from __future__ import annotations

import sys
from pathlib import Path
from time import process_time

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from examples.shop_log import facts, shop_log

from cepheid import Matcher, OccurrencePattern, Pattern, Policy, Skip, detect, semantic
from cepheid.knowledge import EventMapping, Knowledge, individual
from cepheid.knowledge.services import EVENT, SERVICES, service_mapping

ONTOLOGY = Path(__file__).with_name("shop.ttl")
PREFIXES = {
    "": EVENT,
    "shop": "http://shop.example/",
    "item": "http://shop.example/item/",
    "user": "http://shop.example/user/",
    "place": "http://shop.example/place/",
}
MAPPING: EventMapping = service_mapping(
    "http://shop.example/call/{call}/{type}",
    process=individual("shop:{process}"),
    inputs={"shop:user": individual("user:{user}"), "shop:item": individual("item:{item}")},
    outputs={"shop:ok": "ok"},
)
OK = "output(?e, ?o) ^ toParameter(?o, shop:ok)"
ITEM = "input(?e, ?i) ^ toParameter(?i, shop:item) ^ objectValue(?i, ?item)"
USER = "input(?e, ?u) ^ toParameter(?u, shop:user) ^ objectValue(?u, ?user)"
FROM_US = f"{USER} ^ shop:livesIn(?user, ?city) ^ shop:locatedIn(?city, place:US)"
BOOK_TO_US = f"""
    AtomicProcessEndEvent(?e) ^ {OK} ^ dataValue(?o, true) ^ process(?e, ?p) ^ shop:Purchase(?p)
    ^ {ITEM} ^ shop:Book(?item) ^ {FROM_US}
"""
TYPES = f"""
    Done = ?e: AtomicProcessEndEvent [{OK} ^ dataValue(?o, true)]
    Login = ?e: Done [process(?e, shop:Login)]
    LoginFailed = ?e: AtomicProcessEndEvent [process(?e, shop:Login) ^ {OK} ^ dataValue(?o, false)]
    LookupItem = ?e: Done [process(?e, shop:LookupItem)]
    BookRequest = ?e: AtomicProcessStartEvent [process(?e, shop:LookupItem) ^ {ITEM} ^ shop:Book(?item)]
    AddItemToCart = ?e: Done [process(?e, shop:AddItemToCart)]
    Buy = ?e: Done [process(?e, shop:Buy)]
    BuyNow = ?e: Done [process(?e, shop:BuyNow)]
    Purchase = ?e: Done [process(?e, ?p) ^ shop:Purchase(?p)]
    Logout = ?e: Done [process(?e, shop:Logout)]
"""
OF_USERS = {
    "1a": "Logout",
    "1b": "LoginFailed",
    "1c": "BookRequest",
    "2a": "(LoginFailed; LoginFailed; LoginFailed)_2min",
}
OF_SESSIONS = {
    "2b": "(Login; Logout)_1d - Purchase",
    "2c": "(?l: Login; ?o: Logout)_1d [sql: end(o) - start(l) > INTERVAL '20' MINUTE]",
    "2c alarm": "(Login; (Login + 20min))_20min - Logout",
}
EXPRESSIONS = OF_USERS | OF_SESSIONS
NAMES = (*EXPRESSIONS, "3a")
WITHOUT_RECENT = ("2c", "3a")
"""Those that the recent policy is not for: with a condition over several events, and of stages."""
WORKFLOWS = {
    "by the cart": "(LookupItem; AddItemToCart; Buy)_1h",
    "at once": "(LookupItem; BuyNow)_1h",
}
"""Ways to a purchase of one item in one session."""
KINDS = ("Book", "Film", "Game", "ForCooks", "ForGardens")
OF_ITEMS = ("session", "item")
"""The key of workflows."""


def knowledge(events: int) -> Knowledge:
    """What is known of the shop whose log has about so many events."""
    return Knowledge.read([SERVICES, ONTOLOGY, facts(events)], prefixes=PREFIXES)


def expression(name: str, text: str, known: Knowledge) -> OccurrencePattern:
    """The pattern of an expression over the types above, without a policy."""
    return OccurrencePattern.of(TYPES + text, knowledge=known, mapping=MAPPING).named(name)


def spending(known: Knowledge, dollars: float = 1000) -> Pattern:
    """3a: purchases of books that come to more than $1,000 within 3 days, however many they are."""
    return (
        Pattern.begin("earlier", name="3a", knowledge=known, mapping=MAPPING)
        .where(semantic(BOOK_TO_US.replace("?e", "?earlier")))
        .one_or_more()
        .optional()
        .followed_by("last")
        .where(semantic(BOOK_TO_US.replace("?e", "?last")))
        .where("coalesce(sum(earlier.price), 0) + price > $dollars")
        .within("3 days")
        .skip(Skip.past_last_event())
        .with_parameters(dollars=dollars)
    )


def pattern(name: str, known: Knowledge, policy: Policy) -> OccurrencePattern | Pattern:
    """One of the patterns 1a to 3a."""
    return spending(known) if name == "3a" else expression(name, EXPRESSIONS[name], known).policy(policy)


def key_of(name: str) -> str:
    return "session" if name in OF_SESSIONS else "user"


def afterwards(log: pa.Table, name: str, known: Knowledge, policy: Policy) -> pa.Table:
    """What the policy gives in the whole log."""
    return detect(log, pattern(name, known, policy), key=key_of(name), time="at", columns=["call", "price"])


def while_it_arrives(log: pa.Table, name: str, known: Knowledge, *, lateness: str = "30 seconds") -> Matcher:
    """A matcher that has been through the log in the order of its rows."""
    policy = Policy.UNRESTRICTED if name in WITHOUT_RECENT else Policy.RECENT
    asked = pattern(name, known, policy)
    matcher = Matcher(asked, log.schema, key=key_of(name), time="at", columns=["call", "price"], lateness=lateness)
    for start in range(0, len(log), 5_000):
        matcher.process(log.slice(start, 5_000))
    matcher.finish()
    return matcher


def popularity(log: pa.Table, known: Knowledge) -> pa.Table:
    """3b: how many purchases each workflow led to on each day."""
    asked = {name: expression(name, text, known).policy(Policy.RECENT) for name, text in WORKFLOWS.items()}
    found = detect(with_items(log), asked, key=OF_ITEMS, time="at", columns=[])
    return by_sql(
        """PIVOT (SELECT strftime(match_end, '%a') AS day, match_end::DATE AS date, pattern FROM found)
           ON pattern USING count(*) GROUP BY date, day ORDER BY date""",
        found=found,
    )


def effectiveness(log: pa.Table, known: Knowledge) -> pa.Table:
    """3c: for each kind of item how often it was put into a cart, the share that was bought, and after how long."""
    carts, purchases = (
        detect(
            with_items(log),
            {kind: put(kind, then, known) for kind in KINDS},
            key=OF_ITEMS,
            time="at",
            columns=[],
        )
        for then in ("Put", "(Put; Buy)_1h")
    )
    return by_sql(
        """SELECT pattern AS kind, carts, purchases / carts AS share, seconds
           FROM (SELECT pattern, count(*) AS carts FROM carts GROUP BY ALL) JOIN
                (SELECT pattern, count(*) AS purchases, median(epoch(match_end - match_start)) AS seconds
                 FROM purchases GROUP BY ALL) USING (pattern)
           ORDER BY share DESC""",
        carts=carts,
        purchases=purchases,
    )


def put(kind: str, then: str, known: Knowledge) -> OccurrencePattern:
    """The pattern `then` over the type Put: an item of the kind was put into a cart."""
    type_ = f"Put = ?e: AddItemToCart [{ITEM} ^ shop:{kind}(?item)] "
    return expression(kind, type_ + then, known).policy(Policy.RECENT)


def with_items(log: pa.Table) -> pa.Table:
    """The calls that are about an item."""
    return log.filter(pc.field("item").is_valid())


def by_sql(query: str, **tables: pa.Table) -> pa.Table:
    with duckdb.connect() as database:
        database.execute("SET TimeZone = 'UTC'")
        for name, table in tables.items():
            database.register(name, table)
        return database.sql(query).to_arrow_table()


def main(events: int) -> None:
    """The tables."""
    log, known = shop_log(events), knowledge(events)
    print(f"{len(log):,} events; the seconds are processor time, for the count before them")
    print(f"{'':<10}{'all':>9}{'':>8}{'recent':>9}{'':>8}{'arriving':>10}{'':>8}{'late':>6}")
    for name in NAMES:
        print(f"{name:<10}", end="")
        for policy in (Policy.UNRESTRICTED, Policy.RECENT):
            began = process_time()
            if policy is Policy.RECENT and name in WITHOUT_RECENT:
                print(f"{'':>17}", end="")
            else:
                print(f"{len(afterwards(log, name, known, policy)):>9,}{process_time() - began:>6.1f} s", end="")
        began = process_time()
        counts = while_it_arrives(log, name, known).counts
        print(f"{counts.matches:>10,}{process_time() - began:>6.1f} s{counts.late:>6}")
    for name, table in ("3b", popularity), ("3c", effectiveness):
        began = process_time()
        rows = table(log, known).to_pandas().round(2).to_string(index=False)
        print(f"\n{name} in {process_time() - began:.1f} s\n{rows}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
