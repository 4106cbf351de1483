"""Codes in stock: batches, sealing, expiry, holds and traces."""
