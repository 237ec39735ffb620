//! Whether a write fits into the quotas of its namespace.

use crate::amounts::Amounts;
use crate::scope;
use crate::usage::Counted;
use jiff::Timestamp;
use mainstay_object::Object;
use mainstay_quantity::Tally;

/// A write that may use something.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// The kind of its object.
    pub kind: &'a Counted,
    /// What is written, as a whole object.
    pub object: &'a Object,
    /// What was there before; none when something is created.
    pub old: Option<&'a Object>,
    /// Whether only the status is written: then what is used is counted but not bounded.
    pub is_status: bool,
    /// The time.
    pub now: Timestamp,
}

/// What quotas have used once a write is made: pairs of a quota's place in `quotas` and its new
/// `status.used`, of those that change.
///
/// # Errors
///
/// Why it does not fit, in the words of the plugin `ResourceQuota`: `exceeded quota: …`, `failed
/// quota: …`, or that nobody has counted yet what is used.
pub fn charge(quotas: &[Object], write: Write<'_>) -> Result<Vec<(usize, Amounts)>, String> {
    let Write { kind, object, old, .. } = write;
    let mut concerned = Vec::new();
    for (at, quota) in quotas.iter().enumerate() {
        let hard = Amounts::read(quota.get(&["status", "hard"]));
        let bounded: Vec<&str> = hard.names().filter(|name| kind.uses(name)).collect();
        if bounded.is_empty() || !scope::is_in_all(quota, kind, object) {
            continue;
        }
        if let Some(missing) = kind.missing(bounded.iter().copied(), object) {
            return Err(format!("failed quota: {}: {missing}", quota.name()));
        }
        let used = Amounts::read(quota.get(&["status", "used"]));
        if bounded.iter().any(|name| used.get(name).is_none()) {
            let names = bounded.join(",");
            return Err(format!("status unknown for quota: {}, resources: {names}", quota.name()));
        }
        concerned.push((at, hard, used));
    }
    let all = kind.usage(object, write.now);
    let negative: Vec<&str> =
        all.iter().filter(|(_, amount)| amount.sign() < 0).map(|(name, _)| name).collect();
    if !negative.is_empty() {
        return Err(format!("quota usage is negative for resource(s): {}", negative.join(",")));
    }
    let more = old.map(|old| all.above(&kind.usage(old, write.now)));
    let mut charged = Vec::new();
    for (at, hard, used) in concerned {
        let quota = &quotas[at];
        // What a quota has not counted so far is new to it.
        let counted = old.is_some_and(|old| scope::is_in_all(quota, kind, old));
        let delta = if counted { more.as_ref().unwrap_or(&all) } else { &all };
        let delta = delta.some();
        if delta.is_empty() {
            continue;
        }
        let requested = delta.only(|name| hard.get(name).is_some());
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
            return Err(format!(
                "exceeded quota: {}, requested: {}, used: {}, limited: {}",
                quota.name(),
                requested.only(exceeds),
                used.only(exceeds),
                hard.only(exceeds)
            ));
        }
        if !requested.is_empty() {
            charged.push((at, sum));
        }
    }
    Ok(charged)
}

/// What the objects of some kinds use of a quota: its `status.used`. A kind with its objects stands
/// for all of them in the quota's namespace; what the quota bounds and nobody counts is left out.
pub fn total<'a>(
    quota: &Object,
    kinds: impl IntoIterator<Item = (&'a Counted, &'a [Object])>,
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
            used.add(&kind.usage(object, now).only(bounded));
        }
    }
    used
}

/// Whether the status of a quota says what it bounds and that this much is used.
pub fn is_current(quota: &Object, used: &Amounts) -> bool {
    let read = |path| Amounts::read(quota.get(path));
    read(&["spec", "hard"]) == read(&["status", "hard"]) && read(&["status", "used"]) == *used
}
