"""The staff of the back office and their roles."""
