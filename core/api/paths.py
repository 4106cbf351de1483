"""The paths of the API. This module imports nothing, because the settings use it."""

API_PREFIX = "/api/"  # of every version
API_BASE = "/api/v1"
