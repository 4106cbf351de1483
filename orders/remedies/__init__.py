"""Remedies for orders that went wrong: credits, replacements, recalls, and bookings."""
