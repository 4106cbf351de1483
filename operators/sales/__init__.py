"""Sales and margins: the overview's figures, the reports, and their files."""
