"""Semantic filters as SQL, where what events mean follows from each event alone."""
