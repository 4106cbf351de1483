"""Buys with the client that openapi-generator has made. Reads {baseUrl, apiKey, purchases} from
standard input, and prints the orders."""

import json
import sys

import openapi_client as client

given = json.load(sys.stdin)
configuration = client.Configuration(host=given["baseUrl"], access_token=given["apiKey"])
orders = []
with client.ApiClient(configuration) as connection:
    api = client.OrdersApi(connection)
    for key, purchase in given["purchases"].items():
        body = client.PurchaseRequest.from_json(json.dumps(purchase))
        order = api.create_order(key, body).data.actual_instance
        orders.append(api.get_order(order.reference).data.to_dict())
print(json.dumps(orders, default=str))
