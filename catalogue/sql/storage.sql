-- Storage of the hot tables of this app (docs/performance.md).

-- Every purchase updates its shelf. With free space on the page, the new row version stays there
-- and no index changes (HOT). Frequent vacuuming removes old row versions, which would otherwise
-- form long chains while a long snapshot is open.
ALTER TABLE catalogue_shelf SET (
    fillfactor = 25, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000
);

-- A purchase leaves a dead entry at the front of the index of unsold codes, where the next purchase
-- starts to read. By default, vacuum would wait until a fifth of all codes changed: two million of
-- ten million. A tenth of each page stays free, so that the update of a sold code fits on its page.
ALTER TABLE catalogue_vouchercode SET (
    fillfactor = 90, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 50000,
    autovacuum_analyze_scale_factor = 0.02
);
