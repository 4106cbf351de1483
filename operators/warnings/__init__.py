"""Warnings for staff: what the apps watch, and who receives a warning when a limit is crossed."""
