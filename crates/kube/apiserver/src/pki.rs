//! The cluster's keys and certificates.
