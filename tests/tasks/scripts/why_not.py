"""Why are there so few heat waves of three days?"""

import pandas as pd
from tests.tasks.data import VEGA

from cepheid import Pattern, why

weather = pd.read_csv(VEGA / "seattle-weather.csv", parse_dates=["date"])
heat = (
    Pattern.begin("first").where("temp_max >= 30")
    .next("second").where("temp_max >= 30")
    .next("third").where("temp_max >= 30")
)  # fmt: skip
found = why(weather, heat, time="date")
