"""Shared by every wing: base classes of pages, static files, formats, the desk's
numbers."""
