"""Money: bookings, their approvals, the ledger, closes and transfers."""
