"""Connections to servers of the web: guarded, limited, one request each."""
