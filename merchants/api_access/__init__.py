"""What a merchant's programs use: API clients and their keys, and merchant references."""
