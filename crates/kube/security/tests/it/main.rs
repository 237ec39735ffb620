//! Pods against the Pod Security Standards.

mod labels;
mod rules;
