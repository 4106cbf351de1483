"""The first site is lost, and the second one takes over (docs/operate/second-site.md)."""
