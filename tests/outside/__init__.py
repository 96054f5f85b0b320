"""A family from outside: all that a new one is, and nothing else anywhere.

It is the classic Bloom filter under another name and number. ``python -m pytest -p tests.outside``
adds its record before anything is collected, so that whatever lists families has one more.
"""

from filters import families
from tests.outside import page

families.add(page.RECORD)
