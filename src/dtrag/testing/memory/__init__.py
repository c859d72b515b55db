"""Every store of dtrag in memory, on one shared `MemoryState`. They keep the promises of `dtrag.ports`."""
