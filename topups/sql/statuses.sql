-- Whether a fulfilment has what its status needs, and nothing that its status does not allow: a reason
-- for a failure, a person who has claimed it, the time at which it ended, and a refund.
--
-- A check of fulfilments calls it. As expressions of checks, the rules would add about 50 µs to a top-up,
-- because PostgreSQL plans the expressions of checks in each statement (docs/performance.md,
-- "Conditions of triggers and checks").
CREATE OR REPLACE FUNCTION topups_agrees_with_status(
    p_status text, p_failure_reason text, p_claimed_by integer, p_closed_at timestamptz,
    p_refund_due_at timestamptz, p_refunded_at timestamptz
) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    is_claimed boolean := p_claimed_by IS NOT NULL;
    has_ended boolean := p_closed_at IS NOT NULL;
    has_refund boolean := p_refund_due_at IS NOT NULL OR p_refunded_at IS NOT NULL;
BEGIN
    IF p_status = 'failed' THEN
        RETURN p_failure_reason IS NOT NULL
            AND p_failure_reason IN ('wrong_id', 'no_stock', 'fulfilment_failed')
            AND has_ended AND NOT is_claimed;
    END IF;
    RETURN p_failure_reason IS NULL AND NOT has_refund AND CASE p_status
        WHEN 'pending' THEN NOT has_ended AND NOT is_claimed
        WHEN 'pending_review' THEN NOT has_ended AND NOT is_claimed
        WHEN 'processing' THEN NOT has_ended AND is_claimed
        WHEN 'completed' THEN has_ended AND NOT is_claimed
        ELSE false
    END;
END $$;
