"""Four readings in a row above 103.5 l/s, though readings come in any order within six hours."""

import pandas as pd
from tests.tasks.data import RIVER

from cepheid import Matcher, Pattern

flow = pd.read_csv(RIVER / "datasets/water-flow.csv").set_axis(["at", "flow"], axis="columns").dropna()
flow["at"] = pd.to_datetime(flow["at"], utc=True)
arriving = flow.sample(frac=1, random_state=1)
arriving = arriving.iloc[(arriving["at"].astype("int64") // 10**9 // 3600 // 6).argsort(kind="stable")]
leak = Pattern.begin("high").where("flow > 103.5").times(4).consecutive()
matcher = Matcher(leak, flow, time="at", lateness="5 hours", outputs=["matches", "late"])
rows = []
for first in range(0, len(arriving), 10):
    rows += matcher.process(arriving.iloc[first : first + 10]).to_pylist()
rows += matcher.finish().to_pylist()
