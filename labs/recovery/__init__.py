"""Restoring a backup, and promoting a replica."""
