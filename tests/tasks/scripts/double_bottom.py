"""A double bottom: the price falls, rises, falls to within two percent of the first low, and rises above the peak."""

import pandas as pd
from tests.tasks.data import BOKEH

from cepheid import Pattern, Skip, detect

stocks = pd.read_csv(BOKEH / "stocks.csv.gz", parse_dates=["Date"])
falls = "Close < coalesce(last({0}.Close), last({1}.Close))"
rises = "Close > coalesce(last({0}.Close), last({1}.Close))"
double_bottom = (
    Pattern.begin("start")
    .next("down").where(falls.format("down", "start")).one_or_more().greedy().consecutive()
    .next("up").where(rises.format("up", "down")).one_or_more().greedy().consecutive()
    .next("again").where(falls.format("again", "up")).one_or_more().greedy().consecutive()
    .next("out").where("abs(last(again.Close) / last(down.Close) - 1) < 0.02 AND Close > last(up.Close)")
    .skip(Skip.past_last_event())
)  # fmt: skip
matches = detect(stocks, double_bottom, key="Ticker", time="Date")
