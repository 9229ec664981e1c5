"""What becomes of each start of a pattern whose partial matches are stored in sets, without listing its matches."""
