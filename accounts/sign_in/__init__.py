"""The sign-in of people: sessions, limits on guessing, second factors, confirmations."""
