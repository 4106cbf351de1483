-- Takes the next p_quantity codes of a shelf for an order and returns them sealed, in shelf order
-- (contract, "Consistency guarantees"). Refuses with VT001 insufficient_stock.
--
-- The UPDATE locks the shelf until commit. Purchases of one shelf run one at a time, only one gets
-- the last code, and a purchase that waited sees the stock after the other committed or rolled
-- back.
CREATE OR REPLACE FUNCTION catalogue_take_codes(p_shelf bigint, p_quantity integer, p_order bigint)
RETURNS bytea[] LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    codes bytea[];
BEGIN
    UPDATE catalogue_shelf
       SET available_stock = available_stock - p_quantity
     WHERE id = p_shelf AND available_stock >= p_quantity;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = 'VT001', MESSAGE = 'insufficient_stock';
    END IF;

    -- ORDER BY position, not id: only the index of unsold codes has that order. With id, the
    -- planner may walk the primary key past every code ever sold. An array, not a join: the kept
    -- plan does not know that p_quantity is small, and might join by reading all codes
    -- (docs/decisions/0008-kept-plans.md).
    WITH taken AS (
        UPDATE catalogue_vouchercode
           SET order_id = p_order
         WHERE id = ANY (ARRAY(
                   SELECT id FROM catalogue_vouchercode
                    WHERE shelf_id = p_shelf AND order_id IS NULL
                    ORDER BY position
                    LIMIT p_quantity
                    FOR UPDATE
               ))
        RETURNING position, sealed
    )
    SELECT array_agg(sealed ORDER BY position) INTO codes FROM taken;

    IF cardinality(codes) IS DISTINCT FROM p_quantity THEN
        RAISE EXCEPTION 'shelf % counts more codes than it holds; run reconcile', p_shelf;
    END IF;
    RETURN codes;
END $$;
