"""The client libraries for merchants, and what writes their advice."""
