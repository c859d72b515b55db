"""The version of the package, which `dtrag.__version__` is."""

__version__ = "0.1.0"
