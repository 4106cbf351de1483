"""The sign-in of staff: passwords, second factors, passkeys, and company accounts."""
