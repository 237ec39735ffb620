//! Lets Subscriptions that arrive together be resolved together, into one InstallPlan.
//!
//! `kubectl apply` writes the objects of a file one after the other, over a network with tens of
//! milliseconds between. The window slides with each arrival, and has an end. It saves work and decides
//! nothing: what Subscriptions come to is the same if it is missed (see `succession`).

use mainstay_api::Subscription;
use mainstay_object::NamespacedName;
use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

/// How many windows a namespace waits at most while Subscriptions go on arriving.
const MOST: u32 = 10;

/// The Subscriptions of a namespace that were seen.
#[derive(Debug, Default)]
struct Seen {
    uids: BTreeSet<String>,
    /// When the first of those that are waited for arrived, and the last.
    arrived: Option<(Duration, Duration)>,
}

/// The windows of all namespaces.
#[derive(Debug, Default)]
pub(crate) struct Debounce(Mutex<HashMap<NamespacedName, Seen>>);

impl Debounce {
    /// How long a namespace waits for more Subscriptions; none if none arrived within `window`. `now` is
    /// the elapsed time of the clock.
    pub(crate) fn wait(
        &self,
        namespace: &NamespacedName,
        subscriptions: &[Subscription],
        window: Duration,
        now: Duration,
    ) -> Option<Duration> {
        let mut all = self.0.lock();
        let seen = all.entry(namespace.clone()).or_default();
        let uids = subscriptions.iter().map(|it| it.metadata.uid.clone()).collect::<BTreeSet<_>>();
        if !uids.is_subset(&seen.uids) {
            let first = seen.arrived.map_or(now, |(first, _)| first);
            seen.arrived = Some((first, now));
        }
        seen.uids = uids;
        let (first, last) = seen.arrived?;
        let until = last.saturating_add(window).min(first.saturating_add(window * MOST));
        let left = until.saturating_sub(now);
        if left.is_zero() {
            seen.arrived = None;
            return None;
        }
        Some(left)
    }

    /// Forgets a namespace without Subscriptions.
    pub(crate) fn forget(&self, namespace: &NamespacedName) {
        self.0.lock().remove(namespace);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_millis(30);

    fn subscriptions(count: usize) -> Vec<Subscription> {
        (0..count)
            .map(|at| {
                let mut it = Subscription::new("ns", &format!("s{at}"));
                it.metadata.uid = format!("uid-{at}");
                it
            })
            .collect()
    }

    #[test]
    fn the_window_slides_with_arrivals_and_has_an_end() {
        let debounce = Debounce::default();
        let key = NamespacedName::cluster("ns");
        let at = Duration::from_millis;
        let wait = |count, now| debounce.wait(&key, &subscriptions(count), WINDOW, at(now));
        assert_eq!(wait(1, 1000), Some(WINDOW));
        assert_eq!(wait(1, 1020), Some(at(10)), "nothing new");
        assert_eq!(wait(2, 1020), Some(WINDOW), "one more");
        assert_eq!(wait(2, 1050), None);
        assert_eq!(wait(2, 1060), None, "no new one, no wait");
        assert_eq!(wait(1, 1070), None, "one that goes is no arrival");
        for (count, now) in (3..).zip((2000..2300).step_by(20)) {
            assert!(wait(count, now).is_some(), "{now}");
        }
        assert_eq!(wait(40, 2300), None, "after ten windows the namespace is served");
    }
}
