"""Speed and memory against peers; ``make bench`` runs all of it."""
