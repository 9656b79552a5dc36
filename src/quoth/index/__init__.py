"""Keys on disk and in memory, and the search for the nearest."""
