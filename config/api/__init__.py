"""The frame of every API response: envelope, errors, JSON, request fields, pagination, OpenAPI."""
