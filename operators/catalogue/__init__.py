"""Stock and prices: products, shelves, batches, codes, price lists and top-up products."""
