"""The audit trail, and the timelines of orders and other objects."""
