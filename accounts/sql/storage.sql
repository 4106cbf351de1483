-- Storage of the growing tables of this app (docs/decisions/0054-request-records.md).

-- Records are only added, and each day's cleanup deletes the oldest. By default, vacuum would wait
-- for a fifth of the table: millions of dead rows at its beginning, where the next cleanup starts
-- to read, and as many new ones to freeze at once.
ALTER TABLE accounts_requestrecord SET (
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_insert_scale_factor = 0.02,
    autovacuum_analyze_scale_factor = 0.02
);

-- Staff are few among the members of merchants, and lists of staff read an index of their own. Each
-- email asks for the language of its reader.
CREATE INDEX IF NOT EXISTS accounts_staff ON auth_user (username) WHERE is_staff;
CREATE INDEX IF NOT EXISTS accounts_person_of_email ON auth_user (email);
