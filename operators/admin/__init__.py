"""The frame of the back office: its site, menu, first page and search."""
