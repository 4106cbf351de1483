-- Takes one from the stock of a top-up product, if its stock is counted; returns whether it is.
-- Refuses with VT001 insufficient_stock. A counted product stays locked until commit.
CREATE OR REPLACE FUNCTION topups_take_stock(p_product bigint, OUT takes_stock boolean)
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE topups_topupproduct
       SET available_stock = available_stock - 1
     WHERE id = p_product AND available_stock > 0;
    takes_stock := FOUND;
    IF NOT takes_stock THEN
        PERFORM 1 FROM topups_topupproduct WHERE id = p_product AND available_stock IS NULL;
        IF NOT FOUND THEN
            RAISE EXCEPTION USING ERRCODE = 'VT001', MESSAGE = 'insufficient_stock';
        END IF;
    END IF;
END $$;
