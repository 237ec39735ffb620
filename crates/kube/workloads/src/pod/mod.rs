//! The simulated kubelet: runs Pods on their node, and ends them when they are deleted.
//!
//! One controller is the kubelet of all simulated nodes.

use crate::Started;
use crate::common::{Context, is_object_gone};
use crate::simulate::{self, Note, PodAddresses};
use crate::views::{PodView, Views};
use mainstay_client::{Action, Controller, DeleteOptions, Error, EventType, Reconciler};
use mainstay_object::{NamespacedName, Object, builtin};
use parking_lot::Mutex;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Starts the kubelet. `behaviours` are a label name and a default: Pods behave as the label says,
/// or else by the default.
pub(crate) fn start(
    context: &Context,
    views: &Views,
    [behaviour_label, behaviour]: [Option<String>; 2],
    started: &mut Started,
) {
    let controller = Controller::new("pods").workers(8);
    let queue = controller.queue();
    views.pods.subscribe(move |change| {
        if change.after.is_some() {
            queue.add(change.key.clone());
        }
    });
    let reconciler = Reconcile {
        kubelet: context.with_user_agent("kubelet").with_component("kubelet"),
        views: views.clone(),
        addresses: Mutex::default(),
        behaviour_label,
        behaviour,
    };
    let controller = controller.reads(&views.pods).reads(&views.nodes);
    started.controller(controller.start(reconciler, context.stop.clone()));
}

/// IP addresses of Pods, by the Pod's uid, so that no two Pods get the same.
#[derive(Default)]
struct Addresses {
    next: u32,
    by_uid: FxHashMap<Arc<str>, u32>,
    in_use: rustc_hash::FxHashSet<u32>,
}

/// Pod addresses are 10.244.0.0/16 without the first and last of each 256; nothing routes them.
const ADDRESSES: u32 = 256 * 254;

fn address(number: u32) -> String {
    format!("10.244.{}.{}", number / 254, number % 254 + 1)
}

fn address_number(address: &str) -> Option<u32> {
    let (high, low) = address.strip_prefix("10.244.")?.split_once('.')?;
    Some(high.parse::<u32>().ok()? * 254 + low.parse::<u32>().ok()?.checked_sub(1)?)
}

impl Addresses {
    /// The address of a Pod; `used` lists the addresses of existing Pods.
    fn of(&mut self, uid: &Arc<str>, used: impl Fn() -> Vec<(Arc<str>, Arc<str>)>) -> String {
        if let Some(number) = self.by_uid.get(uid) {
            return address(*number);
        }
        if self.by_uid.is_empty() || self.in_use.len() * 2 > ADDRESSES as usize {
            // At start, and when half of the addresses are taken: find out which are in use.
            self.by_uid = used()
                .into_iter()
                .filter_map(|(uid, ip)| Some((uid, address_number(&ip)?)))
                .collect();
            self.in_use = self.by_uid.values().copied().collect();
        }
        let mut number = self.next;
        // With more Pods than addresses, addresses repeat; nothing here routes by them.
        for _ in 0..ADDRESSES {
            if !self.in_use.contains(&number) {
                break;
            }
            number = (number + 1) % ADDRESSES;
        }
        self.next = (number + 1) % ADDRESSES;
        self.by_uid.insert(Arc::clone(uid), number);
        self.in_use.insert(number);
        address(number)
    }
}

struct Reconcile {
    kubelet: Context,
    views: Views,
    addresses: Mutex<Addresses>,
    /// The label that requests a behaviour where the annotation is absent.
    behaviour_label: Option<String>,
    /// The behaviour without annotation and label.
    behaviour: Option<String>,
}

impl Reconciler for Reconcile {
    type Key = NamespacedName;
    type Error = Error;

    async fn reconcile(&self, key: &NamespacedName) -> Result<Action, Error> {
        let Some(pod) = self.views.pods.get(key) else { return Ok(Action::Done) };
        let outcome = if pod.terminating {
            self.end(key, &pod).await
        } else if pod.is_finished() {
            Ok(())
        } else if let Some(node) = &pod.node {
            match self.live(key, &pod, node).await {
                Err(error) if is_object_gone(&error) => return Ok(Action::Done),
                other => return other,
            }
        } else {
            Ok(())
        };
        match outcome {
            Err(error) if is_object_gone(&error) => Ok(Action::Done),
            other => other.map(|()| Action::Done),
        }
    }
}

impl Reconcile {
    /// Ends a Pod that is being deleted: containers of simulated Pods end at once.
    async fn end(&self, key: &NamespacedName, pod: &PodView) -> Result<(), Error> {
        // With a grace period of zero, only finalizers of other clients keep the Pod.
        if pod.grace == Some(0) {
            return Ok(());
        }
        let options = DeleteOptions::uid(pod.uid.as_ref()).grace_period(0);
        let cluster = &self.kubelet.cluster;
        if pod.tracked && !pod.is_finished() {
            // The finalizer of its Job holds the Pod: the Job reads the final status.
            let live = cluster.get(&builtin::POD, key.namespace(), &key.name).await?;
            if live.uid() == &*pod.uid {
                let status =
                    simulate::status_after_deletion(&live, &self.kubelet.clock.now_rfc3339());
                self.kubelet.write_status(&builtin::POD, &live, status).await?;
            }
        }
        cluster.ensure_deleted(&builtin::POD, key.namespace(), &key.name, &options).await
    }

    /// Emits events about failing containers.
    fn report_notes(&self, pod: &Object, node: &str, notes: Vec<Note>) {
        let recorder = self.kubelet.recorder.on(node);
        for note in notes {
            let kind = if note.is_warning { EventType::Warning } else { EventType::Normal };
            recorder.publish_part(pod, &note.field, kind, note.reason, note.message);
        }
    }

    async fn live(
        &self,
        key: &NamespacedName,
        view: &PodView,
        node: &str,
    ) -> Result<Action, Error> {
        let cluster = &self.kubelet.cluster;
        let Some(node) = self.views.nodes.get(&NamespacedName::cluster(node)) else {
            // Another kubelet runs the Pods of a node that is not simulated.
            return Ok(Action::Done);
        };
        let pod = cluster.get(&builtin::POD, key.namespace(), &key.name).await?;
        if pod.uid() != &*view.uid || pod.is_terminating() {
            return Ok(Action::Done);
        }
        let known_ip = pod.str(&["status", "podIP"]).filter(|ip| !ip.is_empty());
        let pod_ip = match known_ip {
            Some(ip) => ip.to_owned(),
            None => self.addresses.lock().of(&view.uid, || {
                let pods = self.views.pods.list(None);
                pods.into_iter()
                    .filter_map(|(_, pod)| Some((Arc::clone(&pod.uid), pod.ip.clone()?)))
                    .collect()
            }),
        };
        let addresses =
            PodAddresses { host_ip: node.ip.as_deref().unwrap_or("127.0.0.1"), pod_ip: &pod_ip };
        let now = self.kubelet.clock.now_rfc3339();
        // The label acts like the annotation, which is not written.
        let mut with_behaviour = pod.clone();
        if pod.annotation(simulate::ANNOTATION).is_none() {
            let requested_behaviour =
                self.behaviour_label.as_deref().and_then(|label| pod.label(label));
            if let Some(behaviour) = requested_behaviour.or(self.behaviour.as_deref()) {
                with_behaviour.set_annotation(simulate::ANNOTATION, behaviour);
            }
        }
        if let Some(status) = simulate::status(&with_behaviour, &addresses, &now) {
            self.kubelet.write_status(&builtin::POD, &pod, status.clone()).await?;
            let notes = simulate::notes(&with_behaviour, &status);
            if !notes.is_empty() {
                self.report_notes(&pod, view.node.as_deref().unwrap_or_default(), notes);
            }
            with_behaviour.set(&["status"], status);
        }
        let next_change = simulate::next_change(&with_behaviour, &now);
        Ok(next_change.map_or(Action::Done, |wait| Action::in_wall_time(self.kubelet.clock, wait)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pod_addresses_are_unique_and_stable() {
        let mut addresses = Addresses::default();
        let used = || vec![("old".into(), "10.244.0.1".into()), ("odd".into(), "1.2.3.4".into())];
        let (a, b) = (addresses.of(&"a".into(), used), addresses.of(&"b".into(), used));
        assert_eq!((a.as_str(), b.as_str()), ("10.244.0.2", "10.244.0.3"));
        assert_eq!(addresses.of(&"a".into(), used), a);
        for number in [0, 253, 254, ADDRESSES - 1] {
            assert_eq!(address_number(&address(number)), Some(number));
        }
        assert_eq!(address_number("10.244.1.0"), None);
    }
}
