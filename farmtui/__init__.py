"""farm: the console that keeps an agent farm running."""

__version__ = "0.1.0"
