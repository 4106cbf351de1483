"""The wallet for members: balance alerts, charts and statement files."""
