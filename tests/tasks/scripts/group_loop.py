"""How often did a cyclist shift the effort: over 230 watts, then under 105, three times within half an hour?"""

import pandas as pd
from tests.tasks.data import BOKEH

from cepheid import Pattern, Skip, detect

ride = pd.read_csv(BOKEH / "cycling.csv.gz")
ride["at"] = pd.Timestamp("2014-01-01") + pd.to_timedelta(ride["time"])
interval = Pattern.begin("hard").where("power > 230").followed_by("easy").where("power < 105")
intervals = Pattern.begin(interval).times(3).within("30 minutes").skip(Skip.past_last_event())
matches = detect(ride, intervals, time="at", measures={"power": "avg(hard.power)", "reps": "count(hard)"})
