"""Orders and cases of the account, for members and as files."""
