"""A package, so that fixtures of package scope end with the last test of this folder."""
