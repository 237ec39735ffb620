//! Published and made-up packages, walked there and back.

mod bundles;
mod walks;
