"""The frame of the service: settings, URLs, entry points, and what every app builds on."""
