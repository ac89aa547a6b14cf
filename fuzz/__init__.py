"""The harness that looks for the next defect: ``python -m fuzz --help``."""
