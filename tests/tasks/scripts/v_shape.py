"""Where did a share price fall on three days or more, and then rise on three days or more?"""

import pandas as pd
from tests.tasks.data import BOKEH

from cepheid import Pattern, Skip, detect

stocks = pd.read_csv(BOKEH / "stocks.csv.gz", parse_dates=["Date"])
v_shape = (
    Pattern.begin("top")
    .next("fall")
    .where("Close < coalesce(last(fall.Close), top.Close)")
    .times_or_more(3)
    .consecutive()
    .next("rise")
    .where("Close > coalesce(last(rise.Close), last(fall.Close))")
    .times_or_more(3)
    .consecutive()
    .longest()
    .skip(Skip.past_last_event())
)
matches = detect(
    stocks,
    v_shape,
    key="Ticker",
    time="Date",
    measures={"days": "1 + count(fall) + count(rise)", "low": "last(fall.Close)", "end": "last(rise.Close)"},
)
