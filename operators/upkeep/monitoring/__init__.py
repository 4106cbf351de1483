"""Signs of life, gauges and their exporter, readiness, alert rules, and the System page."""
