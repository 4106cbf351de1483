"""The frame of every v1 answer: envelope, JSON, errors, pagination, fallbacks, OpenAPI."""
