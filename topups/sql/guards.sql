-- What was bought never changes, an ended fulfilment never moves again, and a refund is never
-- undone. One change is allowed: 30 days after the end, and when no refund is owed, the player id and
-- the fields may be deleted (topups/backoffice.py). By then no stored response can be replayed. Version
-- 1.0 writes `deleted`, which may be a player id.
CREATE OR REPLACE FUNCTION topups_guard_fulfilment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'fulfilment %: this change is not allowed', OLD.id USING ERRCODE = '42501';
END $$;

CREATE OR REPLACE TRIGGER topups_ended_stays_ended
    BEFORE UPDATE ON topups_fulfilment
    FOR EACH ROW
    WHEN (
        (OLD.order_reference, OLD.account_id, OLD.product_id, OLD.amount, OLD.currency,
         OLD.takes_stock)
        IS DISTINCT FROM
        (NEW.order_reference, NEW.account_id, NEW.product_id, NEW.amount, NEW.currency,
         NEW.takes_stock)
        OR ((OLD.player_id, OLD.fields) IS DISTINCT FROM (NEW.player_id, NEW.fields)
            AND (NEW.player_id IN ('(deleted)', 'deleted') AND NEW.fields = '[]'
                 AND OLD.closed_at < now() - interval '30 days'
                 AND (OLD.refund_due_at IS NULL OR OLD.refunded_at IS NOT NULL)) IS NOT TRUE)
        OR (OLD.status IN ('completed', 'failed')
            AND (OLD.status, OLD.failure_reason, OLD.closed_at, OLD.refund_due_at)
                IS DISTINCT FROM (NEW.status, NEW.failure_reason, NEW.closed_at, NEW.refund_due_at))
        OR (OLD.refunded_at IS NOT NULL AND NEW.refunded_at IS DISTINCT FROM OLD.refunded_at)
    )
    EXECUTE FUNCTION topups_guard_fulfilment();

CREATE OR REPLACE TRIGGER topups_fulfilment_is_kept
    BEFORE DELETE ON topups_fulfilment
    FOR EACH ROW EXECUTE FUNCTION topups_guard_fulfilment();

-- The history of a fulfilment is append-only. Last, because a purchase also writes its fulfilment first.
CREATE OR REPLACE FUNCTION topups_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'the history of a fulfilment is append-only: % refused', TG_OP
        USING ERRCODE = '42501';
END $$;

CREATE OR REPLACE TRIGGER topups_history_is_append_only
    BEFORE UPDATE OR DELETE OR TRUNCATE ON topups_fulfilmentevent
    FOR EACH STATEMENT EXECUTE FUNCTION topups_refuse_change();
