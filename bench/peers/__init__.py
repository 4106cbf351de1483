"""The same purchase by other hands, over the same tables."""
