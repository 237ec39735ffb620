//! Opened with its first code.
