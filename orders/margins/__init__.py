"""Cost, margin and value of stock: counting after the purchase, and reading what was counted."""
