"""Results on disk: files written atomically, with their provenance."""
