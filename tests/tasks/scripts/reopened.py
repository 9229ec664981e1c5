"""Which dry spells of three days were a short relief: rain before them, and rain again on the fourth day?"""

import pandas as pd
from tests.tasks.data import VEGA

from cepheid import Pattern, detect

weather = pd.read_csv(VEGA / "seattle-weather.csv", parse_dates=["date"])
reopened = (
    Pattern.begin("open").where("precipitation > 0")
    .next("closed").where("precipitation = 0").times(3).consecutive()
    .next("reopened").where("precipitation > 0")
)  # fmt: skip
matches = detect(weather, reopened, time="date")
