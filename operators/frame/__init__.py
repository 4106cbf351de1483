"""What every wing shares: base classes of pages, static files, formats, the desk's
numbers."""
