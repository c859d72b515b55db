"""Twin worlds: two collections that differ only outside a caller's scope must give the same responses.

`library` creates the collections, `scenarios` defines the requests on each route, `visits` sends them to both and
compares the responses. A new route needs a scenario, or an entry in `EXEMPT` with a reason.
"""
