"""The audit trail: one append-only model, and one function that adds an entry."""
