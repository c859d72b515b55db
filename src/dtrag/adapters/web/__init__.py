"""HTTP requests to other servers: behind the egress policy, with limits on every response."""
