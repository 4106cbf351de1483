"""Sending an account to another cell, and receiving one (docs/operate/cells.md)."""
