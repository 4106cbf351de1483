"""The back office, in wings: one folder for each area of work. docs/architecture.md lists them."""
