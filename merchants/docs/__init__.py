"""The public documentation: its pages, their content, the API reference and the search."""
