"""A real PostgreSQL and a real Valkey for people who have neither: `make run` and `make test`.

Nothing here needs Django's settings, and production never imports it.
"""
