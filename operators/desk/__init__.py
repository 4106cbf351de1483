"""The operators' desk: the queue of top-up orders, the moves of an order, and the dashboard."""
