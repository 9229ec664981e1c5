"""A day of wind and a day of heavy rain, in any order, within two days, and no snow in between: the event algebra."""

import pandas as pd
from tests.tasks.data import VEGA

from cepheid import OccurrencePattern, detect

weather = pd.read_csv(VEGA / "seattle-weather.csv", parse_dates=["date"])
weather["kind"] = "calm"
weather.loc[weather["wind"] >= 7, "kind"] = "wind"
weather.loc[weather["precipitation"] >= 30, "kind"] = "flood"
weather.loc[weather["weather"] == "snow", "kind"] = "snow"
storm = OccurrencePattern.of("((wind & flood) - snow)_2d").taxonomy("kind")
matches = detect(weather, storm, time="date", columns=["kind"])
