"""Evidence of the ledger: hash chains, daily closes, signed roots, and their verification."""
