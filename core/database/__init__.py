"""PostgreSQL beyond the ORM: calls of SQL functions, SQL in migrations, encryption of columns."""
