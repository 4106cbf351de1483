-- Inserts the order of a purchase under the client's next number, with its idempotency key. If the
-- client has a spending limit, the order counts towards it or is refused (spend.sql).
--
-- The counter's row stays locked until commit. Numbers have no gaps, because a purchase that rolls
-- back also rolls back its number. created_at is read under the same lock, not when the purchase
-- began, so a client's orders have the same order by time and by number.
CREATE OR REPLACE FUNCTION orders_add_order(
    p_id bigint, p_record bigint, p_reference text, p_client bigint, p_shelf bigint,
    p_fulfilment bigint, p_quantity integer, p_units_per_sale integer, p_unit_price numeric,
    p_total_price numeric, p_currency text, p_codes_mac bytea, OUT created_at timestamptz
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    order_number bigint;
    is_limited boolean;
BEGIN
    INSERT INTO orders_clientcounter AS counter (client_id, orders) VALUES (p_client, 1)
    ON CONFLICT (client_id) DO UPDATE SET orders = counter.orders + 1
    RETURNING counter.orders, counter.limited INTO order_number, is_limited;

    created_at := clock_timestamp();
    IF is_limited THEN
        PERFORM orders_spend(p_client, p_total_price, created_at);
    END IF;

    INSERT INTO orders_order
        (id, reference, client_id, number, shelf_id, fulfilment_id, quantity, units_per_sale,
         unit_price, total_price, currency, codes_mac, created_at, idempotency_key)
    VALUES
        (p_id, p_reference, p_client, order_number, p_shelf, p_fulfilment, p_quantity,
         p_units_per_sale, p_unit_price, p_total_price, p_currency, p_codes_mac, created_at,
         (SELECT key FROM idempotency_idempotencyrecord WHERE id = p_record));
END $$;
