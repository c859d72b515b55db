"""Twin worlds: two collections that differ only in what a caller may not see must give the same answers.

`library` makes the two collections, `visits` sends the same requests to both and compares the answers, `scenarios` says
what is requested on which route. A new route needs a scenario there, or an entry in `EXEMPT` with the reason.
"""
