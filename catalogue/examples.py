"""An example of a product for the OpenAPI document."""

PRODUCT = {
    "id": 10,
    "name": "Steam wallet code 10",
    "type": "voucher",
    "currency": "USD",
    "merchant_reference": None,
    "available_stock": 25,
    "in_stock": True,
    "price": 9.99,
    "quantity_step": 1,
    "sellable": True,
    "variations": [
        {
            "id": 100,
            "name": "Europe",
            "merchant_reference": "steam-10-eu",
            "available_stock": 40,
            "price": 9.49,
            "quantity_step": 1,
            "sellable": True,
        }
    ],
}
