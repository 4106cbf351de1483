"""kill -9 of one process, or of PostgreSQL, at each database call of an operation in turn."""
