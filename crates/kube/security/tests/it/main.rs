//! Pods against the Pod Security Standards.

#![expect(
    clippy::expect_used,
    reason = "the lints know test functions only, and there are helpers"
)]

mod labels;
mod rules;
