"""The reports of the service about itself: logs, metrics, traces and error reports."""
