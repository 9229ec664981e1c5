"""New highs over five days, of the shares on a watchlist only."""

import pandas as pd
from tests.tasks.data import BOKEH

from cepheid import Pattern, detect

stocks = pd.read_csv(BOKEH / "stocks.csv.gz", parse_dates=["Date"])
watchlist = pd.DataFrame({"ticker": ["IBM", "GOOG"]})
new_high = (
    Pattern.begin("days").where("Ticker IN ($watch)").times(5).consecutive()
    .next("record").where("High > 1.05 * max(days.High)")
)  # fmt: skip
matches = detect(stocks, new_high.with_parameters(watch=watchlist["ticker"]), key="Ticker", time="Date")
