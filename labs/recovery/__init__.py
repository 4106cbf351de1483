"""Backups, restores and copies."""
