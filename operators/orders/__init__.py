"""Orders, cases, lost purchases, and records of requests."""
