"""The programs of docs/cookbook.md, each timed beside what one would do without a filter.

``python -m benchmarks.cookbook`` measures, keeps the record in ``docs/results/cookbook.json`` and
writes the table of the page.
"""
