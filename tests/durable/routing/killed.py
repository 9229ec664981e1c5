"""The host that test_kill kills: `python killed.py URL TIER ORIGIN`.

It finds pairs, and delivers them to an endpoint, a table and another host.
"""

from __future__ import annotations

import sys

from tests.durable.routing.hosts import LOOPBACK, find, opened, tier_opened


def main(url: str, tier: str, origin: str) -> None:
    tier_opened(tier).close()
    with opened(url, origin, LOOPBACK, tier) as host:
        host.subscribe("hook", to=f"{origin}/hook", pause="1 millisecond")
        host.subscribe("table", to="table://alerts")
        host.subscribe("tier", to=f"{tier}#pairs")
        begun = host.sql("SELECT count(*) AS n FROM matches_pairs").column("n")[0].as_py()
        for number in range(begun * 2 + 1, 200, 2):
            find(host, number)
            host.deliver("100 milliseconds")


if __name__ == "__main__":
    main(*sys.argv[1:])
