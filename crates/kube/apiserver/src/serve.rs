//! The TLS port.
