"""The API access of a merchant: API clients and their keys, and merchant references."""
