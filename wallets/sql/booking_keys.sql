-- A booking reference without case, spaces and punctuation: `INV-2026/04 a` and `inv202604A` are the
-- same. A reference of punctuation alone is its own key.
CREATE OR REPLACE FUNCTION wallets_booking_key(p_reference text) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT coalesce(nullif(regexp_replace(lower(p_reference), '[^[:alnum:]]', '', 'g'), ''),
                    p_reference)
$$;

-- Gives each booking its key, or refuses it: the primary key holds every key once. Purchases and
-- refunds have no booking reference and do not call it.
CREATE OR REPLACE FUNCTION wallets_add_booking_key() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO wallets_bookingkey (key, entry_id)
    VALUES (wallets_booking_key(NEW.booking_reference), NEW.id);
    RETURN NULL;
END $$;

CREATE OR REPLACE TRIGGER wallets_booking_has_its_key
    AFTER INSERT ON wallets_ledgerentry
    FOR EACH ROW
    WHEN (NEW.booking_reference IS NOT NULL)
    EXECUTE FUNCTION wallets_add_booking_key();
