-- Takes the next p_quantity codes of a shelf for an order and returns them sealed, in shelf order,
-- with their digests (contract, "Consistency guarantees"). Refuses with VT001 insufficient_stock.
--
-- p_keys holds the ids of the encryption keys that the caller has, one byte each. The first byte of
-- a sealed value is the id of its key. Codes that the caller could not open are not sold: the
-- function fails, and the purchase rolls back (docs/decisions/0027-rotating-keys.md).
--
-- all_digests is the SHA-256 of the digests in that order. With it, the order can name its codes.
--
-- A code is sold until the end of its last day in UTC. A task holds expired codes a few minutes before
-- (catalogue/stock/expiry.py), so those in stock normally have none. While nobody runs the task
-- they count as stock, and a purchase that finds too few others is refused.
--
-- The UPDATE locks the shelf until commit. Purchases of one shelf run one at a time, only one gets
-- the last code, and a purchase that waited sees the stock after the other committed or rolled
-- back.
CREATE OR REPLACE FUNCTION catalogue_take_codes(
    p_shelf bigint, p_quantity integer, p_order bigint, p_keys bytea,
    OUT sealed_codes bytea[], OUT digests bytea[], OUT all_digests bytea
) LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    can_open boolean;
    today date;
BEGIN
    UPDATE catalogue_shelf
       SET available_stock = available_stock - p_quantity
     WHERE id = p_shelf AND available_stock >= p_quantity;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'VT001', MESSAGE = 'insufficient_stock';
    END IF;

    today := (clock_timestamp() AT TIME ZONE 'UTC')::date;  -- after the wait for the shelf

    -- ORDER BY position, not id: only the index of codes in stock has that order. With id, the
    -- planner may walk the primary key past every code ever sold. An array, not a join: the kept
    -- plan does not know that p_quantity is small, and might join by reading all codes
    -- (docs/performance.md).
    WITH taken AS (
        UPDATE catalogue_vouchercode
           SET order_id = p_order
         WHERE id = ANY (ARRAY(
                   SELECT id FROM catalogue_vouchercode
                    WHERE shelf_id = p_shelf AND order_id IS NULL AND hold_id IS NULL
                      AND (expires_on IS NULL OR expires_on >= today)
                    ORDER BY position
                    LIMIT p_quantity
                    FOR UPDATE
               ))
        RETURNING position, sealed, digest
    )
    SELECT array_agg(sealed ORDER BY position), array_agg(digest ORDER BY position),
           sha256(string_agg(digest, '' ORDER BY position)),
           bool_and(position(substr(sealed, 1, 1) IN p_keys) > 0)
      INTO sealed_codes, digests, all_digests, can_open
      FROM taken;

    IF cardinality(sealed_codes) IS DISTINCT FROM p_quantity THEN
        -- What is still in stock has expired: this order has taken all the others.
        IF EXISTS (SELECT FROM catalogue_vouchercode
                    WHERE shelf_id = p_shelf AND order_id IS NULL AND hold_id IS NULL) THEN
            RAISE EXCEPTION USING ERRCODE = 'VT001', MESSAGE = 'insufficient_stock';
        END IF;
        RAISE EXCEPTION 'shelf % counts more codes than it holds; run reconcile', p_shelf;
    END IF;
    IF can_open IS NOT TRUE THEN  -- also if p_keys is null
        RAISE EXCEPTION 'shelf % holds codes sealed with a key that this process does not have',
            p_shelf;
    END IF;
END $$;
