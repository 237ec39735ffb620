//! How much expressions may cost and how large things can be.

/// What one evaluation of a rule or message may cost.
pub const COST_PER_CALL: u64 = 1_000_000;
/// What all evaluations for one object may cost.
pub const COST_PER_OBJECT: u64 = 10_000_000;
/// What one rule of a definition may be estimated to cost.
pub const ESTIMATE_PER_RULE: u64 = 10_000_000;
/// What all rules of a definition may be estimated to cost together.
pub const ESTIMATE_PER_DEFINITION: u64 = 100_000_000;
/// The largest request, in bytes: it bounds all data whose schema does not.
pub const REQUEST_BYTES: u64 = 3 * 1024 * 1024;
/// The longest message that an expression may give, in bytes.
pub const MESSAGE_BYTES: usize = 5 * 1024;
