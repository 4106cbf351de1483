-- How the hot tables of this app are stored.

-- Every sale updates its shelf. Free space on the page keeps the update there (HOT: it touches no
-- index). Frequent vacuuming removes old row versions before long snapshots turn them into a chain.
ALTER TABLE catalogue_shelf SET (
    fillfactor = 25, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000
);

-- A sale leaves a dead entry at the front of the index of unsold codes, where the next sale starts
-- to read. By default vacuum waits until a fifth of all codes changed: two million of ten million.
-- A tenth of each page stays free, so a sold code stays on its page.
ALTER TABLE catalogue_vouchercode SET (
    fillfactor = 90, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000,
    autovacuum_analyze_scale_factor = 0.02
);
