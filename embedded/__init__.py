"""Starts a real PostgreSQL and a real Valkey for `make run` and `make test`.

This package does not read Django's settings, and production never imports it.
"""
