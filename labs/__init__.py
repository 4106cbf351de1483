"""Long searches, measurements and rehearsals of the whole service (labs/README.md)."""
