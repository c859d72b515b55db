"""Contract suites: what every implementation of a port must do, as classes for pytest.

Inherit a suite in a test module and define its fixture; pytest and pytest-asyncio (`asyncio_mode = "auto"`) run it:

    class TestMyKeys(KeyStoreContract):
        @pytest.fixture
        def stores(self) -> Stores:
            return replace(memory_stores(), keys=MyKeys())

Suites of stores have the fixture `stores`: all stores of one empty database (`dtrag.ports.Stores`), because what one of
them writes the others read. Only the audit log may hold lines of earlier tests.
"""
