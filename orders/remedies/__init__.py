"""What staff do about orders that went wrong: credits, replacements, recalls, and bookings."""
