"""Pure numerics: arrays in, frozen results out."""
