"""After which readings did the glucose sensor say nothing for a quarter of an hour?"""

import pandas as pd
from tests.tasks.data import BOKEH

from cepheid import Pattern, detect

readings = pd.read_csv(BOKEH / "CGM.csv.gz", parse_dates=["datetime"])
silence = Pattern.begin("last").not_followed_by("next").within("15 minutes")
matches = detect(readings, silence, time="datetime", columns=["glucose"])
