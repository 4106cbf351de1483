"""Backups, restores, copies and a promoted replica."""
