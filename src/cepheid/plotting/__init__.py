"""Pictures of events and of the matches in them, with Vega-Lite. Only this folder imports Altair and vl-convert (extra
`plot`).

`plot.py` reads the arguments; `tables.py` and `matches.py` read the tables; `timelines/` and `overview.py` make the two
kinds of picture; `picture.py` writes them, in the colours of `theme.py`, as files and for notebooks.
"""
