-- How the table of this app is stored.

-- A record is inserted small and updated twice within milliseconds, the second time with the
-- response. With free space on its page, neither update touches an index (HOT). Cleanup deletes a
-- seventh of the table each day; by default vacuum would wait for a fifth.
ALTER TABLE idempotency_idempotencyrecord SET (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02
);
