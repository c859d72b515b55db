"""Language models: which are configured, how they are called over LangChain, and what they cost."""
