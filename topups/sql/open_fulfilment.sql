-- Inserts the fulfilment of an accepted top-up, with the first event of its history; returns its
-- id.
CREATE OR REPLACE FUNCTION topups_open_fulfilment(
    p_reference text, p_account bigint, p_client bigint, p_product bigint, p_player_id text,
    p_fields jsonb, p_amount numeric, p_currency text, p_takes_stock boolean
) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    opened bigint;
BEGIN
    INSERT INTO topups_fulfilment
        (order_reference, account_id, product_id, player_id, fields, amount, currency,
         takes_stock, status)
    VALUES
        (p_reference, p_account, p_product, p_player_id, p_fields, p_amount, p_currency,
         p_takes_stock, 'pending')
    RETURNING id INTO opened;

    INSERT INTO topups_fulfilmentevent
        (fulfilment_id, move, to_status, actor, channel, note)
    VALUES (opened, 'open', 'pending', 'client:' || p_client, 'api', '');

    RETURN opened;
END $$;
