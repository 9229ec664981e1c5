"""Matches of events that rows open, close and revise: when they are certain, and which events may forbid them."""
