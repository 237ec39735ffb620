//! Tests of the Pod Security Standards.

#![expect(clippy::expect_used, reason = "the lint exempts test functions, but not their helpers")]

mod labels;
mod rules;
