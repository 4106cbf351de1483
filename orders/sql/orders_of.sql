-- Returns the orders of one client as the API shows them, newest first: the order p_reference, or
-- the orders numbered p_oldest to p_newest. Orders of other clients are never returned (contract,
-- "GET /orders and GET /orders/{reference}").
--
-- Merchants poll GET /orders/{reference}. One call with a kept plan costs a third of the three
-- queries that the ORM needs.
--
-- force_generic_plan: a generic plan does not know how short a page is and looks expensive, so
-- PostgreSQL would plan every call again for clients with some thousand orders. OFFSET 0: the
-- planner must look rows up one by one instead of joining whole tables
-- (docs/performance.md).
CREATE OR REPLACE FUNCTION orders_of(
    p_client bigint, p_account bigint, p_reference text, p_oldest bigint, p_newest bigint
) RETURNS TABLE (
    reference text, quantity smallint, units_per_sale smallint, unit_price numeric,
    total_price numeric, currency text, created_at timestamptz,
    product_id bigint, variation_id bigint, merchant_reference text,
    codes_mac bytea, sealed_codes bytea[], digests bytea[],
    system_product_id bigint, player_id text, fulfilment_status text, refunded boolean,
    failure_reason text
) LANGUAGE plpgsql STABLE
SET enable_seqscan = off  -- docs/performance.md
SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
BEGIN
    IF p_reference IS NOT NULL THEN
        SELECT number, number INTO p_oldest, p_newest
          FROM orders_order WHERE reference = p_reference AND client_id = p_client;
    END IF;

    RETURN QUERY
    SELECT sold.reference::text, sold.quantity, sold.units_per_sale, sold.unit_price,
           sold.total_price, sold.currency::text, sold.created_at,
           shelf.product_id, shelf.variation_id, shelf.merchant_reference,
           sold.codes_mac, shelf.sealed_codes, shelf.digests,
           topup.product_id, topup.player_id, topup.status, topup.refunded, topup.failure_reason
      FROM orders_order sold
      LEFT JOIN LATERAL (
            SELECT shelf.product_id, shelf.variation_id,
                   (SELECT link.reference::text FROM catalogue_referencelink link
                     WHERE link.account_id = p_account AND link.shelf_id = shelf.id
                   ) AS merchant_reference,
                   codes.sealed_codes, codes.digests
              FROM catalogue_shelf shelf
             CROSS JOIN LATERAL (
                    SELECT coalesce(array_agg(sealed ORDER BY position), '{}') AS sealed_codes,
                           coalesce(array_agg(digest ORDER BY position), '{}') AS digests
                      FROM catalogue_vouchercode WHERE order_id = sold.id
                   ) codes
             WHERE shelf.id = sold.shelf_id OFFSET 0
           ) shelf ON true
      LEFT JOIN LATERAL (
            SELECT product_id, player_id::text, status::text, refunded_at IS NOT NULL AS refunded,
                   failure_reason::text
              FROM topups_fulfilment WHERE id = sold.fulfilment_id OFFSET 0
           ) topup ON true
     WHERE sold.client_id = p_client AND sold.number BETWEEN p_oldest AND p_newest
     ORDER BY sold.number DESC;
END $$;
