"""The service with one guard removed or weakened at a time; a test must fail (docs/develop.md)."""
