//! What the update graph says of channels, in tables and as properties.

mod chain;
