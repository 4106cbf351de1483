"""Members of an account: roles, invitations, sign-in, passwords and sessions."""
