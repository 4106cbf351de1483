"""The pages about merchants: accounts, clients, keys, members and money."""
