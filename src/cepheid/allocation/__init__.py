"""How a load is divided: how many copies something hot needs, and which standbys hold them. All are pure functions."""
