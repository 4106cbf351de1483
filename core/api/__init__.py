"""What all API endpoints share: envelope, errors, JSON, request fields, pagination, OpenAPI."""
