"""How long files take that are refused."""
