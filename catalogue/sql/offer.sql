-- Finds the shelf that a purchase names, locks it until commit, and returns its price and step.
--
-- Refuses with VT001, in this order: product_reference_not_found, product_reference_ambiguous,
-- product_unknown, variation_mismatch, product_inactive, quantity_step, price_unavailable
-- (contract, "Voucher purchase body").
--
-- One statement locks the shelf, the next reads price, step and state. A purchase that waited for
-- the lock therefore uses what was committed in the meantime
-- (docs/decisions/0018-price-under-the-shelf-lock.md).
CREATE OR REPLACE FUNCTION catalogue_offer(
    p_account bigint, p_product bigint, p_variation bigint, p_merchant_reference text,
    p_quantity integer,
    OUT shelf_id bigint, OUT product_id bigint, OUT variation_id bigint,
    OUT merchant_reference text, OUT unit_price numeric, OUT quantity_step integer,
    OUT currency text
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    on_sale boolean;
    at timestamptz;
BEGIN
    IF p_merchant_reference IS NOT NULL THEN
        SELECT shelf.id, shelf.variation_id INTO shelf_id, variation_id
          FROM catalogue_referencelink link
          JOIN catalogue_shelf shelf ON shelf.id = link.shelf_id
         WHERE link.account_id = p_account AND link.reference = p_merchant_reference
           FOR NO KEY UPDATE OF shelf;
        IF NOT FOUND THEN
            RAISE EXCEPTION USING ERRCODE = 'VT001', MESSAGE = 'product_reference_not_found';
        END IF;
        IF p_variation IS NOT NULL AND p_variation IS DISTINCT FROM variation_id THEN
            RAISE EXCEPTION USING ERRCODE = 'VT001', MESSAGE = 'product_reference_ambiguous';
        END IF;
    ELSE
        PERFORM 1 FROM catalogue_product WHERE id = p_product;
        IF NOT FOUND THEN
            RAISE EXCEPTION USING ERRCODE = 'VT001', MESSAGE = 'product_unknown';
        END IF;
        IF p_variation IS NULL THEN
            SELECT id INTO shelf_id FROM catalogue_shelf
             WHERE product_id = p_product AND variation_id IS NULL
               FOR NO KEY UPDATE;
        ELSE
            SELECT id INTO shelf_id FROM catalogue_shelf
             WHERE product_id = p_product AND variation_id = p_variation
               FOR NO KEY UPDATE;
        END IF;
        IF NOT FOUND THEN
            RAISE EXCEPTION USING ERRCODE = 'VT001', MESSAGE = 'variation_mismatch';
        END IF;
    END IF;

    at := clock_timestamp();  -- after the wait for the shelf
    SELECT product.id, shelf.variation_id, link.reference, shelf.quantity_step, product.currency,
           catalogue_price(
               account.currency, account.price_list_id, shelf.id, product.id, product.category_id,
               product.currency, shelf.price, shelf.next_price, shelf.next_price_from, at),
           catalogue_is_on_sale(product.active, category.active, variation.active)
      INTO product_id, variation_id, merchant_reference, quantity_step, currency,
           unit_price, on_sale
      FROM catalogue_shelf shelf
      JOIN catalogue_product product ON product.id = shelf.product_id
      LEFT JOIN catalogue_category category ON category.id = product.category_id
      LEFT JOIN catalogue_variation variation ON variation.id = shelf.variation_id
      LEFT JOIN accounts_account account ON account.id = p_account
      LEFT JOIN catalogue_referencelink link
             ON link.shelf_id = shelf.id AND link.account_id = p_account
     WHERE shelf.id = catalogue_offer.shelf_id;

    IF NOT on_sale THEN
        RAISE EXCEPTION USING ERRCODE = 'VT001', MESSAGE = 'product_inactive';
    END IF;
    IF p_quantity % quantity_step <> 0 THEN
        RAISE EXCEPTION USING ERRCODE = 'VT001', MESSAGE = 'quantity_step';
    END IF;
    IF unit_price IS NULL THEN
        RAISE EXCEPTION USING ERRCODE = 'VT001', MESSAGE = 'price_unavailable';
    END IF;
END $$;
