"""Mark the rows of the table that belong to a losing streak of five days, and compare their volume with the others."""

import pandas as pd
from tests.tasks.data import BOKEH

from cepheid import Pattern, Skip, detect

stocks = pd.read_csv(BOKEH / "stocks.csv.gz", parse_dates=["Date"])
losing = (
    Pattern.begin("losing").where("Close < Open").times_or_more(5).consecutive().longest().skip(Skip.past_last_event())
)
rows = detect(stocks, losing, key="Ticker", time="Date", rows_per="event")
stocks["streak"] = rows["match_id"]
volumes = stocks.groupby(stocks["streak"].notna())["Volume"].mean()
