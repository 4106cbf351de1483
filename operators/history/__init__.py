"""Who did what: the audit trail, and the timelines of orders and other objects."""
