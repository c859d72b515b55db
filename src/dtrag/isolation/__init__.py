"""The proof of isolation: what a caller gets does not depend on what it may not see.

`library` and `worlds` create two collections that differ only outside the scopes of some visitors, `scenarios` and
`case_scenarios` define their requests on each route, `visits` sends these to both and compares the responses. `live`
compares what callers get from an existing index with what the database answers its owner. `proof` runs either;
`runs` starts it beside a service, which is an ASGI application here.
"""
