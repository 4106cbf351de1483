-- Refuses a person who is both staff and member of an account: people who decide about deliveries
-- and money must not act for a merchant.
--
-- Both triggers run with the person's row locked, so of two concurrent changes the later one sees
-- the earlier one.
CREATE OR REPLACE FUNCTION merchants_refuse_staff() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    person record;
BEGIN
    SELECT is_staff, is_superuser INTO person FROM auth_user WHERE id = NEW.user_id FOR SHARE;
    IF person.is_staff OR person.is_superuser THEN
        RAISE EXCEPTION 'staff are not members of an account' USING ERRCODE = '23514';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER merchants_members_are_not_staff
    BEFORE INSERT OR UPDATE OF user_id ON merchants_membership
    FOR EACH ROW EXECUTE FUNCTION merchants_refuse_staff();

CREATE OR REPLACE FUNCTION merchants_refuse_members() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM merchants_membership WHERE user_id = NEW.id) THEN
        RAISE EXCEPTION 'members of an account are not staff' USING ERRCODE = '23514';
    END IF;
    RETURN NEW;
END $$;

CREATE OR REPLACE TRIGGER merchants_staff_are_not_members
    BEFORE UPDATE OF is_staff, is_superuser ON auth_user
    FOR EACH ROW WHEN (NEW.is_staff OR NEW.is_superuser)
    EXECUTE FUNCTION merchants_refuse_members();
