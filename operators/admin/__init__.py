"""What holds the back office together: its site, menu, first page and search."""
