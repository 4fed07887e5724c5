"""A small farm that runs by itself."""
