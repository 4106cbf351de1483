-- Returns whether a top-up product is sold through this API, and its fields in the order in which
-- they are shown: [{"number", "name", "label", "type", "required", "options": [{"value",
-- "label"}]}]. Returns no row for an unknown product.
--
-- Every top-up purchase calls it. The ORM would need four queries.
CREATE OR REPLACE FUNCTION topups_fields_of(p_product bigint)
RETURNS TABLE (on_sale boolean, fields jsonb) LANGUAGE plpgsql STABLE
SET enable_seqscan = off  -- docs/performance.md
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT topups_is_on_sale(
               product.active, product.published, product.external_provider, category.active),
           coalesce((
               SELECT jsonb_agg(jsonb_build_object(
                          'number', field.number, 'name', field.name, 'label', field.label,
                          'type', field.type, 'required', field.required,
                          'options', coalesce((
                              SELECT jsonb_agg(jsonb_build_object(
                                         'value', option.value, 'label', option.label)
                                         ORDER BY option.position, option.id)
                                FROM topups_topupfieldoption option
                               WHERE option.field_id = field.id), '[]'))
                          ORDER BY field.position, field.number)
                 FROM topups_topupfield field
                WHERE field.product_id = product.id), '[]')
      FROM topups_topupproduct product
      LEFT JOIN catalogue_category category ON category.id = product.category_id
     WHERE product.id = p_product;
END $$;
