"""Which spells of rain overlap a spell of frost?"""

import pandas as pd
from tests.tasks.data import VEGA

from cepheid import detect
from cepheid.intervals import interval_pattern

weather = pd.read_csv(VEGA / "seattle-weather.csv", parse_dates=["date"])
spells = []
for kind, holds in {"rain": weather["precipitation"] > 0, "frost": weather["temp_min"] < 0}.items():
    runs = weather[holds].groupby((~holds).cumsum()[holds])["date"].agg(["min", "max"])
    spells.append(runs.assign(kind=kind, end=runs["max"] + pd.Timedelta(days=1)))
spells = pd.concat(spells).rename(columns={"min": "start"})
overlap = interval_pattern("EVENT PAL(rain overlap frost)").taxonomy("kind")
matches = detect(spells, overlap, time=("start", "end"), columns=["kind"])
