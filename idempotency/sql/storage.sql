-- Storage of the hot table of this app (docs/performance.md).

-- A record is inserted small and updated twice within milliseconds, the second time with the
-- response. With free space on the page, neither update changes an index (HOT). Cleanup deletes a
-- seventh of the table each day. By default, vacuum would wait for a fifth.
ALTER TABLE idempotency_idempotencyrecord SET (
    fillfactor = 70,
    autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02
);
