"""The messages of orders: text, buttons, posting, editing, and the sweep."""
