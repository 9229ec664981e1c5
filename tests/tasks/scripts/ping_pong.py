"""When did the weather go back and forth between rain and no rain, every day for six days?"""

import pandas as pd
from tests.tasks.data import VEGA

from cepheid import Pattern, Skip, detect

weather = pd.read_csv(VEGA / "seattle-weather.csv", parse_dates=["date"])
there_and_back = Pattern.begin("wet").where("precipitation > 0").next("dry").where("precipitation = 0")
ping_pong = Pattern.begin(there_and_back).times(3).consecutive().skip(Skip.past_last_event())
matches = detect(weather, ping_pong, time="date")
