"""A picture of the heat waves of a summer, as a page that opens in a browser."""

from pathlib import Path

import pandas as pd
from tests.tasks.data import VEGA

import cepheid
from cepheid import Pattern, Skip, detect

weather = pd.read_csv(VEGA / "seattle-weather.csv", parse_dates=["date"])
summer = weather[weather["date"].dt.year == 2015]
heat = Pattern.begin("day").where("temp_max >= 30").times_or_more(3).consecutive().longest()
matches = detect(summer, heat.skip(Skip.past_last_event()), time="date")
cepheid.plot(summer, matches, time="date", y="temp_max").save(Path.cwd() / "heat.html")
