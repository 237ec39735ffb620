//! Limits of costs and sizes.

/// The cost limit of one evaluation of a rule or message.
pub const COST_PER_CALL: u64 = 1_000_000;
/// The cost limit of all evaluations for one object.
pub const COST_PER_OBJECT: u64 = 10_000_000;
/// The limit of the estimated cost of one rule of a CRD.
pub const ESTIMATE_PER_RULE: u64 = 10_000_000;
/// The limit of the estimated cost of all rules of a CRD.
pub const ESTIMATE_PER_DEFINITION: u64 = 100_000_000;
/// The largest request in bytes. It limits all data that its schema does not limit.
pub const REQUEST_BYTES: u64 = 3 * 1024 * 1024;
/// The longest message of a message expression, in bytes.
pub const MESSAGE_BYTES: usize = 5 * 1024;
