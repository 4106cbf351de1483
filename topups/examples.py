"""An example of a top-up product for the OpenAPI document."""

TOP_UP_PRODUCT = {
    "id": 500,
    "name": "100 diamonds",
    "category": "Sky Battle",
    "delivery_type": "top_up",
    "price": 4.99,
    "currency": "USD",
    "available_stock": 12,
    "sellable": True,
    "quantity_step": 1,
    "max_quantity": 1,
    "fields": [
        {
            "id": 1,
            "name": "server",
            "label": "Server",
            "type": "dropdown",
            "required": True,
            "options": [{"value": "eu", "label": "Europe"}, {"value": "us", "label": "America"}],
        }
    ],
}
