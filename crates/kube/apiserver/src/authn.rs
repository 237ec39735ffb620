//! Who asks: client certificates and tokens.
