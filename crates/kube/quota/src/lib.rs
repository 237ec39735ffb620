//! `ResourceQuota` and `LimitRange`: the amounts that objects use, and the defaults and bounds for
//! Pods and claims.
//!
//! Pure functions of objects, for admission and for the quota controller:
//!
//! * [`pod`]: the requests and limits of a Pod.
//! * [`CountedKind`]: the kinds that quotas count, and the resources that their objects use.
//! * [`charge`]: whether a write fits into quotas, and their used amounts afterwards; [`total`]:
//!   the used amounts.
//! * [`limits`]: defaults and bounds by `LimitRanges`.
//!
//! The rules are those of Kubernetes' quota evaluators and of its plugins `ResourceQuota` and
//! `LimitRanger`. Not supported: devices of resource claims are not counted.

mod amounts;
mod charge;
mod scope;
mod usage;

pub mod limits;
pub mod pod;

pub use amounts::Amounts;
pub use charge::{QuotaError, QuotaWrite, charge, is_current, total};
pub use usage::CountedKind;
