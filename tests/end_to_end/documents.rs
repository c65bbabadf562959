//! The documents: what they show is what the programs do.
