"""Makes a release: version, changelog, list of components, notes and tag (docs/release.md)."""
