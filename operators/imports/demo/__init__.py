"""The demo shop of the first start: the shop, its history, and the clock of its history."""
