"""What the services of a shop are watched for, after the example of Vaculin and Sycara: in a log of a million events.

Prints how often each pattern is found afterwards, in the whole log, and while the log arrives.
docs/how_to/monitor_services.md explains it. In the folder of a clone:

    python -m examples.shop          # about a million events
    python -m examples.shop 50000    # fewer
"""

from __future__ import annotations

import sys
from time import perf_counter

import pyarrow as pa
from examples.shop_log import CALL_END, CALL_START, shop_log

from cepheid import Matcher, OccurrencePattern, Policy, detect, event

KINDS = {CALL_START: "ProcessCallEvent", CALL_END: "ProcessCallEvent"}
RESTRICTED = {
    "Login": "process = 'Login' AND ok",
    "LoginFailed": "process = 'Login' AND NOT ok",
    "LookupItem": "process = 'LookupItem' AND ok",
    "LookupBook": "process = 'LookupItem' AND ok AND category = 'Book'",
    "AddItemToCart": "process = 'AddItemToCart' AND ok",
    "Buy": "process = 'Buy' AND ok",
    "USBook": "process = 'Buy' AND ok AND country = 'US' AND category = 'Book'",
    "Logout": "process = 'Logout' AND ok",
}
FAILED = event("LoginFailed")
OF_USERS = {
    "1a": "Logout",
    "1b": "LoginFailed",
    "1c": "LookupBook",
    "2a": (FAILED >> FAILED >> FAILED).within("120 seconds"),
    "2b": "(Login; Logout)_2h - Buy",
    "3a": "(?p:USBook; ?q:USBook)_3d[p.price + q.price > 1000]",
    "3b": "(LookupItem; AddItemToCart; Buy)_15min",
    "3c": "(?c:AddItemToCart; (?d:AddItemToCart + 30min))_30min[c.call = d.call] - Buy",
}
OF_CALLS = {
    "2c": f"(?s:{CALL_START}; ?e:{CALL_END})[end(e) - start(s) > INTERVAL '10' SECOND]",
    "2c alarm": f"({CALL_START}; ({CALL_START} + 10s))_10s - {CALL_END}",
}
EXPRESSIONS = OF_USERS | OF_CALLS
CONDITIONED = ("2c", "3a", "3c")
"""Those with a condition over several events: the recent policy is not for them."""


def pattern(name: str) -> OccurrencePattern:
    """One of the patterns, without a policy."""
    made = OccurrencePattern.of(EXPRESSIONS[name]).named(name).taxonomy("type", KINDS)
    for type_, condition in RESTRICTED.items():
        made = made.restrict(type_, CALL_END, condition)
    return made


def key_of(name: str) -> str:
    return "call" if name in OF_CALLS else "user"


def afterwards(log: pa.Table, name: str, policy: Policy) -> pa.Table:
    """What the policy gives in the whole log."""
    return detect(log, pattern(name).policy(policy), key=key_of(name), time="at", columns="call")


def while_it_arrives(log: pa.Table, name: str, *, lateness: str = "30 seconds", batch: int = 5_000) -> Matcher:
    """A matcher that has been through the log in the order of its rows."""
    asked = pattern(name).policy(Policy.UNRESTRICTED if name in CONDITIONED else Policy.RECENT)
    matcher = Matcher(asked, log.schema, key=key_of(name), time="at", columns="call", lateness=lateness)
    for start in range(0, len(log), batch):
        matcher.process(log.slice(start, batch))
    matcher.finish()
    return matcher


def main(events: int) -> None:
    """The table."""
    log = shop_log(events)
    print(f"{len(log):,} events; the seconds are those of the count before them")
    print(f"{'':<10}{'all':>9}{'':>8}{'recent':>9}{'':>8}{'arriving':>10}{'':>8}{'late':>6}")
    for name in EXPRESSIONS:
        print(f"{name:<10}", end="")
        for policy in (Policy.UNRESTRICTED, Policy.RECENT):
            began = perf_counter()
            if policy is Policy.RECENT and name in CONDITIONED:
                print(f"{'':>17}", end="")
            else:
                print(f"{len(afterwards(log, name, policy)):>9,}{perf_counter() - began:>6.1f} s", end="")
        began = perf_counter()
        counts = while_it_arrives(log, name).counts
        print(f"{counts.matches:>10,}{perf_counter() - began:>6.1f} s{counts.late:>6}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
