"""Plans of patterns of stages."""
