-- Whether the sign, the counterpart and the order of an entry are those of its kind. A reversal has the
-- other sign.
--
-- A check of the ledger calls it. As an expression of the check it would add about 65 µs to a purchase,
-- because PostgreSQL plans the expressions of checks in each statement (docs/performance.md,
-- "Conditions of triggers and checks"). PL/pgSQL, because an SQL function would be inlined there.
CREATE OR REPLACE FUNCTION wallets_agrees_with_kind(
    p_kind text, p_counterpart text, p_amount numeric, p_order_reference text,
    p_booking_reference text
) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    is_of_order boolean := p_order_reference IS NOT NULL;
    is_reversal boolean := coalesce(p_booking_reference LIKE 'reversal-of-entry:%', false);
BEGIN
    RETURN CASE p_kind
        WHEN 'purchase' THEN p_counterpart = 'sales' AND is_of_order AND p_amount < 0
        WHEN 'refund' THEN p_counterpart = 'sales' AND is_of_order AND p_amount > 0
        WHEN 'credit'
            THEN p_counterpart = 'sales' AND is_of_order AND (p_amount > 0 OR is_reversal)
        WHEN 'replacement'
            THEN p_counterpart = 'sales' AND is_of_order AND p_amount = 0
                 AND coalesce(p_booking_reference LIKE 'replacement-of-case:%', false)
        WHEN 'deposit'
            THEN p_counterpart = 'bank' AND NOT is_of_order AND (p_amount > 0 OR is_reversal)
        WHEN 'payout'
            THEN p_counterpart = 'bank' AND NOT is_of_order AND (p_amount < 0 OR is_reversal)
        WHEN 'adjustment'
            THEN p_counterpart = 'corrections' AND NOT is_of_order AND p_amount <> 0
        ELSE false
    END;
END $$;
