"""Print what the detector of personal data finds: `python -m tests.personal_data`."""

import sys

from tests.personal_data import table

sys.stdout.write(table() + "\n")
