"""Shared by all API endpoints: envelope, errors, JSON, request fields, pagination, OpenAPI."""
