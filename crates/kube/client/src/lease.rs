//! Leader election: a Lease of `coordination.k8s.io` says which of several candidates works.
//!
//! ```text
//! wait ── no holder, or a silent one ─► hold, work, renew ─┬─ stop ─► release
//!   ▲                                                      │
//!   └── no renewal in time: the work is ended first ◄──────┘
//! ```
//!
//! A candidate measures the silence of the holder with its own monotonic clock since the last
//! observed change of the Lease. So the clocks of machines may differ and may be set. The holder's
//! term also runs while its machine is suspended, because other candidates do not wait for it. The
//! Lease has the format of every Kubernetes component, so other programs may take part.
//!
//! A holder counts its term from before its request, and other candidates count from after the
//! response: so the holder is always the first to consider the term over. A cluster from
//! [`LeaseTerm::over`] writes nothing after that moment, even if the whole process was suspended and its
//! work was not cancelled yet.

use crate::cluster::{Cluster, Patch};
use crate::error::Result;
use mainstay_clock::Clock;
use mainstay_object::{NamespacedName, Object, builtin};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The durations of an election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTimings {
    /// How long a silent holder counts as working (`leaseDuration`).
    pub lease: Duration,
    /// The holder ends its work after so long without a renewal (`renewDeadline`).
    pub renew: Duration,
    /// The interval between renewals and between attempts (`retryPeriod`).
    pub retry: Duration,
}

impl Default for LeaseTimings {
    /// The defaults of Kubernetes components.
    fn default() -> Self {
        Self {
            lease: Duration::from_secs(15),
            renew: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }
}

/// A candidate in the election for a Lease.
#[derive(Clone)]
pub struct Election {
    cluster: Cluster,
    key: NamespacedName,
    identity: String,
    clock: Clock,
    terms: LeaseTimings,
}

/// The term of a candidate that holds the Lease. Clones share the term.
#[derive(Clone, Debug)]
pub struct LeaseTerm {
    stop: CancellationToken,
    fence: Fence,
}

impl LeaseTerm {
    /// Returns when the work has to end.
    pub async fn cancelled(&self) {
        self.stop.cancelled().await;
    }

    /// The token that is cancelled when the work has to end.
    pub const fn token(&self) -> &CancellationToken {
        &self.stop
    }

    /// Whether the work has to end: the term is over, or may be over.
    pub fn is_over(&self) -> bool {
        self.stop.is_cancelled() || self.fence.is_over()
    }

    /// The same cluster for writes in this term: a later write fails with [`crate::Error::Over`]
    /// and is not sent.
    #[must_use]
    pub fn fenced(&self, cluster: &Cluster) -> Cluster {
        cluster.clone().with_fence(self.fence.clone())
    }
}

/// The end of a term that is not renewed.
#[derive(Clone, Debug)]
pub(crate) struct Fence {
    clock: Clock,
    /// In nanoseconds of the clock that includes suspends: other candidates take over then.
    until: Arc<AtomicU64>,
}

impl Fence {
    pub(crate) fn is_over(&self) -> bool {
        nanos(self.clock.elapsed_with_suspend()) >= self.until.load(Ordering::SeqCst)
    }

    fn set(&self, until: Duration) {
        self.until.store(nanos(until), Ordering::SeqCst);
    }
}

/// Saturates after some centuries.
fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The result of an attempt to hold the Lease.
enum Attempt {
    Held,
    /// Another candidate holds it.
    HeldBy(String),
}

/// The last observed Lease, and when it was observed.
#[derive(Default)]
struct Observation {
    version: String,
    since: Duration,
}

impl Election {
    /// A candidate with an identity, which must be unique among running candidates. A candidate
    /// that ends without releasing the Lease and returns with the same identity continues at once.
    pub fn new(cluster: Cluster, key: NamespacedName, identity: String, clock: Clock) -> Self {
        Self { cluster, key, identity, clock, terms: LeaseTimings::default() }
    }

    /// The same election with other durations.
    #[must_use]
    pub fn with_terms(mut self, terms: LeaseTimings) -> Self {
        self.terms = terms;
        self
    }

    /// Runs `work` whenever this candidate holds the Lease, until `stop`. `waits` is called with
    /// the holder when another candidate has it. `work` gets its term, which tells when it has to
    /// end; the Lease is released, or another term begun, only after it has ended. If `work` ends
    /// by itself, the election ends.
    ///
    /// # Errors
    /// The error of `work` within its term. An error after the term, such as
    /// [`crate::Error::Over`], only ends the term. An unavailable API is waited for.
    pub async fn lead<E: std::fmt::Display, Fut: Future<Output = std::result::Result<(), E>>>(
        &self,
        stop: &CancellationToken,
        waits: impl Fn(&str),
        mut work: impl FnMut(LeaseTerm) -> Fut,
    ) -> std::result::Result<(), E> {
        loop {
            let Some(since) = stop.run_until_cancelled(self.acquire(&waits)).await else {
                // The Lease may be ours although the response got lost.
                self.release_if_held().await;
                return Ok(());
            };
            let fence = Fence { clock: self.clock, until: Arc::default() };
            fence.set(since + self.terms.renew);
            let term = LeaseTerm { stop: stop.child_token(), fence };
            let keeping = async {
                self.renew_until_lost(&term, since).await;
                term.stop.cancel();
            };
            let working = async {
                let result = work(term.clone()).await;
                let over = term.is_over();
                term.stop.cancel();
                (result, over)
            };
            let ((result, over), ()) = tokio::join!(working, keeping);
            if !over || stop.is_cancelled() {
                self.release_if_held().await;
                return result;
            }
            if let Err(error) = result {
                tracing::warn!(%error, lease = %self.key, "the work failed as its term was over");
            }
            tracing::warn!(lease = %self.key, "the lease is lost, the work has ended");
        }
    }

    /// Returns when the Lease is held, with the time of the request.
    async fn acquire(&self, waits: &impl Fn(&str)) -> Duration {
        let mut observation = Observation::default();
        let mut reported_holder = String::new();
        loop {
            let requested_at = self.clock.elapsed_with_suspend();
            // A term counts from the request: a Lease that is granted later than this is over at
            // once.
            match tokio::time::timeout(self.terms.renew, self.try_acquire(&mut observation)).await {
                Ok(Ok(Attempt::Held)) => return requested_at,
                Ok(Ok(Attempt::HeldBy(name))) => {
                    if reported_holder != name {
                        waits(&name);
                        reported_holder = name;
                    }
                }
                // Another candidate was faster: read the holder.
                Ok(Err(error)) if error.is_conflict() || error.is_already_exists() => continue,
                Ok(Err(error)) => {
                    tracing::warn!(%error, lease = %self.key, "the lease is not to be had");
                }
                Err(_) => {
                    tracing::warn!(lease = %self.key, "the lease is not to be had: no answer");
                }
            }
            tokio::time::sleep(self.terms.retry).await;
        }
    }

    /// Renews the Lease until the term ends, or it is lost.
    async fn renew_until_lost(&self, term: &LeaseTerm, since: Duration) {
        let mut observation = Observation::default();
        let mut renewed = since;
        loop {
            // Neither a pause nor an attempt outlasts the term, however attempts fail.
            let end = renewed + self.terms.renew;
            let remaining = || end.saturating_sub(self.clock.elapsed_with_suspend());
            let pause = tokio::time::sleep(self.terms.retry.min(remaining()));
            if term.stop.run_until_cancelled(pause).await.is_none() {
                return;
            }
            // Other candidates count from the response, so this counts from before the request.
            let requested_at = self.clock.elapsed_with_suspend();
            let late =
                || tracing::warn!(lease = %self.key, "the lease could not be renewed in time");
            if remaining().is_zero() {
                return late();
            }
            match tokio::time::timeout(remaining(), self.try_acquire(&mut observation)).await {
                Ok(Ok(Attempt::Held)) => {
                    renewed = requested_at;
                    term.fence.set(requested_at + self.terms.renew);
                }
                Ok(Ok(Attempt::HeldBy(holder))) => {
                    tracing::warn!(%holder, lease = %self.key, "another one has the lease");
                    return;
                }
                Ok(Err(error)) => {
                    tracing::warn!(%error, lease = %self.key, "the lease is not renewed");
                }
                Err(_) => return late(),
            }
        }
    }

    /// Acquires or renews the Lease unless another candidate holds it.
    async fn try_acquire(&self, observation: &mut Observation) -> Result<Attempt> {
        let lease = &builtin::LEASE;
        let namespace = Some(&*self.key.namespace);
        let now = self.clock.now_micro();
        let mut spec = json!({
            "holderIdentity": self.identity,
            "leaseDurationSeconds": self.terms.lease.as_secs().max(1),
            "renewTime": now,
        });
        let Some(live) = self.cluster.find(lease, namespace, &self.key.name).await? else {
            spec["acquireTime"] = now.into();
            spec["leaseTransitions"] = 0.into();
            let mut new = Object::new(&lease.gvk(), &self.key.name);
            new.set(&["metadata", "namespace"], (*self.key.namespace).into());
            new.set(&["spec"], spec);
            self.cluster.create(lease, &new).await?;
            return Ok(Attempt::Held);
        };
        let holder = live.str(&["spec", "holderIdentity"]).unwrap_or_default();
        if holder != self.identity {
            let term = live.i64(&["spec", "leaseDurationSeconds"]).unwrap_or(0);
            let term = Duration::from_secs(u64::try_from(term).unwrap_or(0));
            if observation.version != live.resource_version() {
                *observation = Observation {
                    version: live.resource_version().to_owned(),
                    since: self.clock.elapsed(),
                };
            }
            if !holder.is_empty() && self.clock.elapsed() < observation.since + term {
                return Ok(Attempt::HeldBy(holder.to_owned()));
            }
            let before = live.i64(&["spec", "leaseTransitions"]).unwrap_or(0);
            spec["acquireTime"] = now.into();
            spec["leaseTransitions"] = (before + 1).into();
        }
        self.write(&live, spec).await?;
        Ok(Attempt::Held)
    }

    /// Releases the Lease if it is ours. An unreachable server finds out when it expires.
    async fn release_if_held(&self) {
        let _ = tokio::time::timeout(self.terms.retry, self.release()).await;
    }

    async fn release(&self) {
        let lease = &builtin::LEASE;
        let found = self.cluster.find(lease, Some(&self.key.namespace), &self.key.name).await;
        let Ok(Some(live)) = found else { return };
        if live.str(&["spec", "holderIdentity"]) == Some(&*self.identity) {
            let spec = json!({"holderIdentity": "", "leaseDurationSeconds": 1});
            if let Err(error) = self.write(&live, spec).await {
                tracing::debug!(%error, lease = %self.key, "the lease is not given back");
            }
        }
    }

    async fn write(&self, live: &Object, spec: Value) -> Result<()> {
        let body = json!({
            "metadata": {"resourceVersion": live.resource_version()}, "spec": spec,
        });
        let namespace = Some(&*self.key.namespace);
        let patch = Patch::Merge(body);
        self.cluster.patch(&builtin::LEASE, namespace, &self.key.name, &patch).await.map(drop)
    }
}
