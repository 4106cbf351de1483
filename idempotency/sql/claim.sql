-- Claims a key for one attempt, or says what became of the attempt that holds it.
--
-- outcome      meaning                                                    also returned
-- claimed      go on with the purchase, as this attempt                   record_id, attempt
-- reused       the key was used for a different request
-- replay       the stored success                                         response
-- in_progress  the window of the running attempt is not over
-- abandoned    the window is over and a purchase exists                   order_reference
--
-- Its commit need not be durable: WAL is sequential, so a purchase that is durable makes its claim
-- durable too. Call it as a transaction of its own.
--
-- The first attempt's number is a random one. A crash may lose a claim, and with it the step of the
-- sequence that numbered its record: then the next record has the same id, and must not answer to
-- an attempt that outlived the crash behind a connection pooler.
CREATE OR REPLACE FUNCTION idempotency_claim(
    p_client bigint, p_key text, p_fingerprint bytea, p_window_seconds integer,
    OUT outcome text, OUT record_id bigint, OUT attempt integer,
    OUT order_reference text, OUT response bytea
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    held idempotency_idempotencyrecord;
BEGIN
    PERFORM set_config('synchronous_commit', 'off', true),
            set_config('enable_seqscan', 'off', true);  -- docs/performance.md, "The young table"

    -- Round again only where the record changed between two of these statements: another request
    -- wrote it, cleanup deleted it, another retry took it over, or its purchase committed. Each of
    -- those ends a round.
    FOR round IN 1..100 LOOP
        -- To look is cheaper than to try, and a merchant who retries does so more than once.
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

        -- Take over. Waits for a purchase of the old attempt that is just committing, and then
        -- finds its order; an old attempt that comes later finds its number gone.
        UPDATE idempotency_idempotencyrecord AS taken
           SET attempt = taken.attempt + 1, started_at = clock_timestamp()
         WHERE taken.id = held.id AND taken.attempt = held.attempt
           AND taken.order_reference IS NULL
        RETURNING 'claimed', taken.id, taken.attempt INTO outcome, record_id, attempt;
        IF FOUND THEN
            RETURN;
        END IF;
    END LOOP;
    RAISE EXCEPTION 'the idempotency record kept changing';
END $$;
