"""The engine's package. This release holds the filters and the policies below it, no engine yet."""

__version__ = "0.1.0"

__all__ = ["__version__"]
