"""What members see of the wallet: balance alerts, charts and statement files."""
