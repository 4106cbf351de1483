"""The client library for merchants, and what writes its advice."""
