"""When did the flow in a water pipe exceed the mean of the six hours before by a tenth?"""

import pandas as pd
from tests.tasks.data import RIVER

from cepheid import Pattern, detect

flow = pd.read_csv(RIVER / "datasets/water-flow.csv", parse_dates=["Time"], date_format="ISO8601")
flow["Time"] = pd.to_datetime(flow["Time"], utc=True)
burst = (
    Pattern.begin("before").times(6).consecutive()
    .next("burst").where("`Water flow [l/s]` > 1.1 * avg(before.`Water flow [l/s]`)")
)  # fmt: skip
matches = detect(flow, burst, time="Time")
