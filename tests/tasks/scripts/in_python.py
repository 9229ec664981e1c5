"""When did a share price jump by three times the median change of the ten days before? A condition in Python."""

import itertools

import pandas as pd
from tests.tasks.data import BOKEH

from cepheid import Pattern, Skip, detect

stocks = pd.read_csv(BOKEH / "stocks.csv.gz", parse_dates=["Date"])


def jumps(event, matched):
    """The price changed by more than three times the typical change of the quiet days."""
    closes = [one["Close"] for one in matched["quiet"]]
    changes = sorted(abs(b - a) for a, b in itertools.pairwise(closes))
    return abs(event["Close"] - closes[-1]) > 3 * changes[len(changes) // 2]


jump = Pattern.begin("quiet").times(11).consecutive().next("jump").where(jumps).skip(Skip.past_last_event())
matches = detect(stocks, jump, key="Ticker", time="Date")
