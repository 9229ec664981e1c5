"""The simulation of rates: how much each thread gets under each way to decide about copies, over many seeds."""
