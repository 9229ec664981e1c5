"""Distribution control as US 2022/0019462 A1 describes it, simulated: standbys take a part of the load of originals
that are hot for a while.

Stages of threads send messages forward only. Control threads see what they send; when an original gets hot, they ask it
to copy its parameters to standbys, and divide its events. `network` runs this message by message, `races` in all orders
that can be, and `rates` in numbers of messages a second, to compare it with one place that sees all counts.
"""
