"""The kernel of patterns of stages that stores partial matches in sets."""
