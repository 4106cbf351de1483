-- Takes the next codes of a shelf for an order and returns them sealed, in shelf order.
-- Refuses with VT001 insufficient_stock.
--
-- The shelf's row is locked first and held until commit. So the purchases of one shelf queue up
-- here, the last code goes to one of them, and whoever waited sees the true stock: codes taken by
-- a purchase that then fails are back before the next one looks.
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

    -- ORDER BY position, not id: only the index of unsold codes can serve it. By id the planner
    -- walks the primary key past every code that was ever sold. And by an array, not a join: a plan
    -- that is kept does not know how few codes p_quantity is, and might join by reading them all.
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
