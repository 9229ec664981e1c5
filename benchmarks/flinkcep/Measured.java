/** What a run did: events processed, matches found, and the time it took. */
record Measured(long events, long matches, double seconds) {}
