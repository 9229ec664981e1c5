"""Timelines: what is at which place (`scene.py`), as marks one by one or in steps of time (`drawn.py`), and as a chart
(`chart.py`).
"""
