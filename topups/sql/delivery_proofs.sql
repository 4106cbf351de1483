-- Only a delivered top-up has proofs of delivery. An ended one stays so (guards.sql).
CREATE OR REPLACE FUNCTION topups_check_proof() RETURNS trigger LANGUAGE plpgsql
SET enable_seqscan = off  -- docs/performance.md
AS $$
BEGIN
    PERFORM FROM topups_fulfilment WHERE id = NEW.fulfilment_id AND status = 'completed';
    IF NOT FOUND THEN
        RAISE EXCEPTION 'fulfilment % is not delivered', NEW.fulfilment_id USING ERRCODE = '23514';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER topups_proof_is_of_a_delivery
    BEFORE INSERT ON topups_deliveryproof
    FOR EACH ROW EXECUTE FUNCTION topups_check_proof();

-- A proof is never changed. Of its file only `sealed` changes, when the encryption key does, and
-- `delete_old_data` deletes it.
CREATE OR REPLACE FUNCTION topups_refuse_change_of_proof() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'a proof of delivery is kept: % refused', TG_OP USING ERRCODE = '42501';
END $$;

CREATE OR REPLACE TRIGGER topups_proof_is_kept
    BEFORE UPDATE OR DELETE OR TRUNCATE ON topups_deliveryproof
    FOR EACH STATEMENT EXECUTE FUNCTION topups_refuse_change_of_proof();

CREATE OR REPLACE TRIGGER topups_file_of_proof_is_kept
    BEFORE UPDATE ON topups_deliveryfile
    FOR EACH ROW
    WHEN ((OLD.proof_id, OLD.token, OLD.name, OLD.content_type, OLD.size)
          IS DISTINCT FROM (NEW.proof_id, NEW.token, NEW.name, NEW.content_type, NEW.size))
    EXECUTE FUNCTION topups_refuse_change_of_proof();
