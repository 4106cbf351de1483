"""Keeps the service healthy: `reconcile`, retention, resealing, and monitoring."""
