"""The processor time of files that are refused."""
