"""Backups, restores and copies, by the commands of the pages."""
