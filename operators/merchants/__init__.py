"""Merchants: accounts, clients, keys and members."""
