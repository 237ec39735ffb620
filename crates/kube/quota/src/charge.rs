//! Quota admission: whether a write fits into the quotas of its namespace.

use crate::amounts::Amounts;
use crate::scope;
use crate::usage::CountedKind;
use jiff::Timestamp;
use mainstay_object::Object;
use mainstay_quantity::Tally;

/// A write that may use resources of a quota.
#[derive(Clone, Copy, Debug)]
pub struct QuotaWrite<'a> {
    /// The kind of its object.
    pub kind: &'a CountedKind,
    /// The new object, complete.
    pub object: &'a Object,
    /// The stored object; none for a creation.
    pub old: Option<&'a Object>,
    /// Whether the write changes the status only: then its use is counted but not bounded.
    pub is_status: bool,
    /// The current time.
    pub now: Timestamp,
}

/// A write does not fit into the quotas; the texts are those of the plugin `ResourceQuota`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuotaError {
    /// The object does not specify what a quota bounds.
    #[error("failed quota: {quota}: {missing}")]
    Missing {
        /// The name of the quota.
        quota: String,
        /// The missing requests or limits.
        missing: String,
    },
    /// The status of a quota does not have the used amounts yet.
    #[error("status unknown for quota: {quota}, resources: {resources}")]
    UnknownStatus {
        /// The name of the quota.
        quota: String,
        /// The bounded resources.
        resources: String,
    },
    /// The object uses a negative amount.
    #[error("quota usage is negative for resource(s): {resources}")]
    Negative {
        /// The resources with negative amounts.
        resources: String,
    },
    /// The write needs more than the remaining amount.
    #[error("exceeded quota: {quota}, requested: {requested}, used: {used}, limited: {limited}")]
    Exceeded {
        /// The name of the quota.
        quota: String,
        /// The requested amounts.
        requested: Amounts,
        /// The used amounts.
        used: Amounts,
        /// The hard limits.
        limited: Amounts,
    },
}

/// Charges a write to quotas. Returns, for each quota that changes, its index in `quotas` and its
/// new `status.used`.
///
/// # Errors
///
/// If the write does not fit, or the used amounts are unknown.
pub fn charge(
    quotas: &[Object],
    write: QuotaWrite<'_>,
) -> Result<Vec<(usize, Amounts)>, QuotaError> {
    let QuotaWrite { kind, object, old, .. } = write;
    let mut concerned = Vec::new();
    for (at, quota) in quotas.iter().enumerate() {
        let hard = Amounts::read(quota.get(&["status", "hard"]));
        let bounded: Vec<&str> = hard.names().filter(|name| kind.uses(name)).collect();
        if bounded.is_empty() || !scope::is_in_all(quota, kind, object) {
            continue;
        }
        if let Some(missing) = kind.missing(bounded.iter().copied(), object) {
            return Err(QuotaError::Missing { quota: quota.name().to_owned(), missing });
        }
        let used = Amounts::read(quota.get(&["status", "used"]));
        if bounded.iter().any(|name| used.get(name).is_none()) {
            let (quota, resources) = (quota.name().to_owned(), bounded.join(","));
            return Err(QuotaError::UnknownStatus { quota, resources });
        }
        concerned.push((at, hard, used));
    }
    let all = kind.usage(object, write.now);
    let negative: Vec<&str> =
        all.iter().filter(|(_, amount)| amount.sign() < 0).map(|(name, _)| name).collect();
    if !negative.is_empty() {
        return Err(QuotaError::Negative { resources: negative.join(",") });
    }
    let more = old.map(|old| all.excess_over(&kind.usage(old, write.now)));
    let mut charged = Vec::new();
    for (at, hard, used) in concerned {
        let quota = &quotas[at];
        // An object that the quota did not count before is charged completely.
        let counted = old.is_some_and(|old| scope::is_in_all(quota, kind, old));
        let delta = if counted { more.as_ref().unwrap_or(&all) } else { &all };
        let delta = delta.non_zero();
        if delta.is_empty() {
            continue;
        }
        let requested = delta.retain_names(|name| hard.get(name).is_some());
        let mut sum = used.clone();
        sum.add(&requested);
        let exceeds = |name: &str| {
            requested.get(name).is_some()
                && sum.get(name).is_some_and(|sum| Some(sum) > hard.get(name))
        };
        if !write.is_status
            && requested.names().any(exceeds)
            && !mainstay_fault::is_on("quotas-are-exceeded")
        {
            return Err(QuotaError::Exceeded {
                quota: quota.name().to_owned(),
                requested: requested.retain_names(exceeds),
                used: used.retain_names(exceeds),
                limited: hard.retain_names(exceeds),
            });
        }
        if !requested.is_empty() {
            charged.push((at, sum));
        }
    }
    Ok(charged)
}

/// The amounts that objects use of a quota: its `status.used`. Each kind comes with all its objects
/// in the quota's namespace; resources that no given kind uses are left out.
pub fn total<'a>(
    quota: &Object,
    kinds: impl IntoIterator<Item = (&'a CountedKind, &'a [Object])>,
    now: Timestamp,
) -> Amounts {
    let hard = Amounts::read(quota.get(&["spec", "hard"]));
    let mut used = Amounts::default();
    for (kind, objects) in kinds {
        let bounded = |name: &str| kind.uses(name) && hard.get(name).is_some();
        for name in hard.names().filter(|name| bounded(name)) {
            let mut zero = Amounts::default();
            zero.set(name, Tally::ZERO);
            used.add(&zero);
        }
        for object in objects.iter().filter(|object| scope::is_in_all(quota, kind, object)) {
            used.add(&kind.usage(object, now).retain_names(bounded));
        }
    }
    used
}

/// Whether the status of a quota has the hard limits of the spec and these used amounts.
pub fn is_current(quota: &Object, used: &Amounts) -> bool {
    let read = |path| Amounts::read(quota.get(path));
    read(&["spec", "hard"]) == read(&["status", "hard"]) && read(&["status", "used"]) == *used
}
