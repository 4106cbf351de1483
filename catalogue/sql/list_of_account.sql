-- An account and its price list have the same currency.
ALTER TABLE accounts_account
    ADD CONSTRAINT catalogue_list_of_account FOREIGN KEY (price_list_id, currency)
    REFERENCES catalogue_pricelist (id, currency);
