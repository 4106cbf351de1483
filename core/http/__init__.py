"""Below the views: middleware, body limits, the request log, error pages, health probes."""
