"""The pages of the back office that belong to no other wing, its menu and its search."""
