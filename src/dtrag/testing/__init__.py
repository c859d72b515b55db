"""For tests of programs that build on dtrag: models and stores in memory, and contract suites for implementations.

Nothing here is imported by dtrag itself. Only `dtrag.testing.contracts` needs pytest.
"""
