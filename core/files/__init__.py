"""Files: tables to download, cells of CSV, uploads, and logs read back."""
