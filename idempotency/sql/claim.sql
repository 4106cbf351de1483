-- Claims a key for one attempt, or returns the state of the key (contract, "Idempotency record").
--
-- outcome      meaning                                                    also returned
-- claimed      go on with the purchase, as this attempt                   record_id, attempt
-- reused       the key was used for a different request
-- replay       a success is stored                                        response
-- in_progress  an attempt started less than p_window_seconds ago
-- abandoned    the last attempt started before that, and bought           order_reference
--
-- Call it in a transaction of its own. Its commit is not durable: PostgreSQL writes its log in
-- order, so the durable commit of the purchase makes the claim durable too
-- (docs/decisions/0001-one-durable-commit.md).
--
-- The number of the first attempt is random. A crash may lose a claim together with the id that its
-- record got from the sequence. The next record then gets the same id, and an old attempt that
-- survived the crash behind a connection pooler must not pass for the new one
-- (docs/decisions/0003-attempt-numbers.md).
CREATE OR REPLACE FUNCTION idempotency_claim(
    p_client bigint, p_key text, p_fingerprint bytea, p_window_seconds integer,
    OUT outcome text, OUT record_id bigint, OUT attempt integer,
    OUT order_reference text, OUT response bytea
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    held idempotency_idempotencyrecord;
BEGIN
    -- enable_seqscan: docs/performance.md
    PERFORM set_config('synchronous_commit', 'off', true),
            set_config('enable_seqscan', 'off', true);

    -- Another round is needed only if the record changed between two statements of a round: another
    -- request inserted it or took it over, cleanup deleted it, or its purchase committed.
    FOR round IN 1..100 LOOP
        -- A SELECT costs less than a failing INSERT, and merchants who retry do so repeatedly
        -- (docs/performance.md).
        SELECT * INTO held FROM idempotency_idempotencyrecord
         WHERE client_id = p_client AND key = p_key;
        IF NOT FOUND THEN
            INSERT INTO idempotency_idempotencyrecord (client_id, key, fingerprint, attempt)
            VALUES (p_client, p_key, p_fingerprint, 1 + floor(random() * 1e9)::integer)
            ON CONFLICT (client_id, key) DO NOTHING
            RETURNING 'claimed', id, attempt INTO outcome, record_id, attempt;
            CONTINUE WHEN NOT FOUND;
            RETURN;
        END IF;

        IF held.fingerprint <> p_fingerprint THEN
            outcome := 'reused';
            RETURN;
        END IF;
        IF held.response IS NOT NULL THEN
            outcome := 'replay';
            response := held.response;
            RETURN;
        END IF;
        IF held.started_at > clock_timestamp() - make_interval(secs => p_window_seconds) THEN
            outcome := 'in_progress';
            RETURN;
        END IF;
        IF held.order_reference IS NOT NULL THEN
            outcome := 'abandoned';
            order_reference := held.order_reference;
            RETURN;
        END IF;

        -- Take the key over. If the old attempt is committing its purchase, this UPDATE waits, then
        -- finds the order and changes nothing. If the old attempt continues later, its stamp finds
        -- another number and its purchase rolls back.
        UPDATE idempotency_idempotencyrecord AS taken
           SET attempt = taken.attempt + 1, started_at = clock_timestamp()
         WHERE taken.id = held.id AND taken.attempt = held.attempt
           AND taken.order_reference IS NULL
        RETURNING 'claimed', taken.id, taken.attempt INTO outcome, record_id, attempt;
        IF FOUND THEN
            RETURN;
        END IF;
    END LOOP;
    RAISE EXCEPTION 'the idempotency record kept changing; gave up after 100 rounds';
END $$;
