"""How staff sign in: passwords, second factors, passkeys, and company accounts."""
