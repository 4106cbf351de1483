"""Other implementations of the voucher purchase, on the same tables."""
