"""Retrievers for other libraries, each a module with an extra of its own: `langchain`, `llama_index`, `haystack`."""
