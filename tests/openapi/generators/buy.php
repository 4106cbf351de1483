<?php
// Buys with the client that openapi-generator has made. Reads {client, baseUrl, apiKey, purchases}
// from standard input, and prints the orders.

use OpenAPI\Client\Api\OrdersApi;
use OpenAPI\Client\Configuration;
use OpenAPI\Client\Model\PurchaseRequest;

$given = json_decode(stream_get_contents(STDIN), true);
require "/usr/share/php/GuzzleHttp/autoload.php";
spl_autoload_register(function (string $class) use ($given): void {
    $prefix = "OpenAPI\\Client\\";
    if (str_starts_with($class, $prefix)) {
        require "{$given["client"]}/lib/" . strtr(substr($class, strlen($prefix)), "\\", "/") . ".php";
    }
});

$configuration = (new Configuration())->setHost($given["baseUrl"])->setAccessToken($given["apiKey"]);
$api = new OrdersApi(new GuzzleHttp\Client(), $configuration);
$orders = [];
foreach ($given["purchases"] as $key => $purchase) {
    $order = $api->createOrder($key, new PurchaseRequest($purchase))->getData();
    $orders[] = $api->getOrder($order->getReference())->getData();
}
echo json_encode($orders);
