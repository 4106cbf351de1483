"""Access to the API: keys, authentication, rate limits, and records of use."""
