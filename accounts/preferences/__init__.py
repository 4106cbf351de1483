"""The language and the time zone of a person."""
