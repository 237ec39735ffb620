//! Subscription debounce: Subscriptions that arrive together are resolved together, into one
//! InstallPlan.
//!
//! `kubectl apply` writes the objects of a file one after the other, tens of milliseconds apart
//! over a network. The window slides with each arrival, up to a limit. The debounce only saves
//! work: a Subscription that misses the window ends in the same state (see `succession`).

use mainstay_api::Subscription;
use mainstay_object::NamespacedName;
use parking_lot::Mutex;
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

/// The limit of the sliding window, as a multiple of the window.
const MOST: u32 = 10;

/// The Subscriptions of a namespace that the debounce has seen.
#[derive(Debug, Default)]
struct Arrivals {
    uids: BTreeSet<String>,
    /// When the first and the last Subscription of the current window arrived.
    window: Option<(Duration, Duration)>,
}

/// The windows of all namespaces.
#[derive(Debug, Default)]
pub(crate) struct Debounce(Mutex<HashMap<NamespacedName, Arrivals>>);

impl Debounce {
    /// How long a namespace waits for more Subscriptions; none if none arrived within `window`.
    /// `now` is the elapsed time of the clock.
    pub(crate) fn wait(
        &self,
        namespace: &NamespacedName,
        subscriptions: &[Subscription],
        window: Duration,
        now: Duration,
    ) -> Option<Duration> {
        let mut all = self.0.lock();
        let known = all.entry(namespace.clone()).or_default();
        let is_new = |subscription: &Subscription| !known.uids.contains(&subscription.metadata.uid);
        if subscriptions.iter().any(is_new) {
            let first = known.window.map_or(now, |(first, _)| first);
            known.window = Some((first, now));
            let uids = subscriptions.iter().map(|subscription| subscription.metadata.uid.clone());
            known.uids = uids.collect();
        }
        let (first, last) = known.window?;
        let until = last.saturating_add(window).min(first.saturating_add(window * MOST));
        let remaining = until.saturating_sub(now);
        if remaining.is_zero() {
            known.window = None;
            return None;
        }
        Some(remaining)
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
                let mut subscription = Subscription::new("ns", &format!("s{at}"));
                subscription.metadata.uid = format!("uid-{at}");
                subscription
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
