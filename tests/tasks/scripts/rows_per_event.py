"""Each day of each heat wave, with its number and the highest temperature so far: one row an event."""

import pandas as pd
from tests.tasks.data import VEGA

from cepheid import Pattern, Skip, detect

weather = pd.read_csv(VEGA / "seattle-weather.csv", parse_dates=["date"])
heat = Pattern.begin("day").where("temp_max >= 30").times_or_more(3).consecutive().longest()
matches = detect(
    weather,
    heat.skip(Skip.past_last_event()),
    time="date",
    rows_per="event",
    measures={"day_number": "count(day)", "highest": "max(day.temp_max)", "days": "FINAL count(day)"},
)
