-- Adds the audit entry of a price that SQL changed. The triggers of the price histories call it.
CREATE OR REPLACE FUNCTION audit_record_price(
    type text, id bigint, name text, before numeric, after numeric
) RETURNS void LANGUAGE sql AS $$
    INSERT INTO audit_auditentry
           (actor_name, action, object_type, object_id, reference, changes)
    VALUES ('sql:' || session_user, 'price_changed', type, id, left(name, 64),
            jsonb_build_object('price', jsonb_build_array(before::text, after::text)));
$$;
