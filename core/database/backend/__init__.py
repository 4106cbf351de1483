"""Django's PostgreSQL backend, except for one check (base.py). DATABASES names this package."""
