//! Built-in controllers and simulated nodes: they make a bare Kubernetes API behave like a cluster.
//!
//! Namespaces get their default objects and are emptied when they are deleted. Dependents of
//! deleted owners are collected. Deployments roll out through `ReplicaSets` to Pods. Pods are
//! scheduled on simulated nodes and become Ready, Jobs complete, Services get endpoints,
//! ClusterRoles are aggregated. All access goes through [`Cluster`], so the controllers run against
//! any Kubernetes API that lacks its own.
//!
//! ```text
//! caches (projections) ─► queue of keys ─► observe: live object + caches ─► decide (pure) ─► apply
//! ```
//!
//! Every decision is a pure function in a file of its own and table-tested. Nothing polls, and
//! objects in their desired state are not written. [`simulate`] describes what happens to
//! containers.
//!
//! Not part of this crate: real containers, volumes behind claims, autoscalers.

mod certificates;
mod cluster_roles;
mod collector;
mod common;
mod credentials;
mod cron_job;
mod daemon_set;
mod deployment;
mod disruption;
mod job;
mod namespace;
mod node;
mod placement;
mod pod;
mod protection;
mod quota;
mod replica_set;
mod scheduler;
mod service;
mod stateful_set;
mod template;
mod tokens;
mod views;
mod workload;

pub mod simulate;

use crate::common::Context;
pub use crate::credentials::ClusterCredentials;
use crate::views::Views;
use futures::future::{BoxFuture, join_all};
use mainstay_client::{Cluster, Recorder};
use mainstay_clock::Clock;
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The settings of the controllers and simulated nodes.
#[derive(Clone, Debug)]
pub struct Options {
    /// The number of simulated nodes; zero leaves every Pod pending.
    pub nodes: usize,
    /// The clock of all controllers.
    pub clock: Clock,
    /// The certificates (PEM) that clients in Pods trust: `ca.crt` of the ConfigMap
    /// `kube-root-ca.crt` in every namespace. None omits that ConfigMap.
    pub root_ca: Option<String>,
    /// Signs certificates and tokens. None leaves `CertificateSigningRequests` and token Secrets to
    /// other controllers.
    pub credentials: Option<Arc<ClusterCredentials>>,
    /// The version that nodes report, such as `v1.35.0`.
    pub kubelet_version: String,
    /// A label on Pods that requests a behaviour where the annotation [`simulate::ANNOTATION`] is
    /// absent: for manifests whose annotations must not change.
    pub behaviour_label: Option<String>,
    /// The behaviour of Pods that request none. Without it they are ready at once, and complete if
    /// a Job owns them.
    pub behaviour: Option<String>,
}

impl Options {
    /// One node and no certificates.
    pub fn new(clock: Clock) -> Self {
        Self {
            nodes: 1,
            clock,
            root_ca: None,
            credentials: None,
            kubelet_version: "v1.35.0".to_owned(),
            behaviour_label: None,
            behaviour: None,
        }
    }
}

/// The running controllers.
pub struct Workloads {
    /// Cancelled when dropped.
    stop: DropGuard,
    synced: watch::Receiver<bool>,
    /// Behind a lock only so that threads can share the handle.
    ended: Mutex<Vec<BoxFuture<'static, ()>>>,
}

impl Workloads {
    /// Starts all controllers. Must be called inside a tokio runtime.
    pub fn start(cluster: Cluster, options: Options) -> Self {
        let cluster = cluster.with_user_agent("kube-controller-manager");
        let stop = CancellationToken::new();
        let context = Context {
            recorder: Recorder::start(&cluster, "mainstay-workloads", options.clock, stop.clone()),
            stop: stop.clone(),
            clock: options.clock,
            cluster,
        };
        let views = Views::start(&context);
        let mut started = Started::default();
        let collector = collector::start(&context, &mut started);
        namespace::start(&context, options.root_ca.as_deref(), &collector, &mut started);
        scheduler::start(&context, &views, &mut started);
        if let Some(keys) = &options.credentials {
            certificates::start(&context, keys, &mut started);
            tokens::start(&context, keys, options.root_ca.as_deref(), &mut started);
        }
        let behaviours = [options.behaviour_label.clone(), options.behaviour.clone()];
        pod::start(&context, &views, behaviours, &mut started);
        replica_set::start(&context, &views, &mut started);
        deployment::start(&context, &views, &mut started);
        stateful_set::start(&context, &views, &mut started);
        daemon_set::start(&context, &views, &mut started);
        job::start(&context, &views, &mut started);
        cron_job::start(&context, &views, &mut started);
        service::start(&context, &views, &mut started);
        cluster_roles::start(&context, &mut started);
        protection::start(&context, &views, &mut started);
        quota::start(&context, &views, &collector, &mut started);
        disruption::start(&context, &views, &mut started);
        node::start_lifecycle(&context, &views, &options.kubelet_version, &mut started);
        started.background(node::start(&context, options));
        let (all, synced) = watch::channel(false);
        tokio::spawn(async move {
            join_all(started.synced).await;
            // The receiver may be dropped.
            let _ = all.send(true);
        });
        Self { stop: stop.drop_guard(), synced, ended: Mutex::new(started.ended) }
    }

    /// Returns once every controller has complete caches and works.
    pub async fn synced(&self) {
        let mut synced = self.synced.clone();
        // Fails only when the runtime shuts down.
        let _ = synced.wait_for(|synced| *synced).await;
    }

    /// Stops every controller and waits until all have ended. Dropping the handle stops them too,
    /// without waiting.
    pub async fn shutdown(self) {
        drop(self.stop);
        join_all(self.ended.into_inner()).await;
    }
}

/// Collects the handles of started controllers for [`Workloads`].
#[derive(Default)]
struct Started {
    synced: Vec<BoxFuture<'static, ()>>,
    ended: Vec<BoxFuture<'static, ()>>,
}

impl Started {
    fn controller<K>(&mut self, handle: mainstay_client::ControllerHandle<K>)
    where
        K: Clone + Eq + std::hash::Hash + Send + Sync + 'static,
    {
        let synced = handle.when_synced();
        self.synced.push(Box::pin(synced));
        self.ended.push(Box::pin(handle.ended()));
    }

    fn background(&mut self, task: tokio::task::JoinHandle<()>) {
        self.ended.push(Box::pin(async move {
            // A task that panicked has ended as well; the panic is in the log.
            let _ = task.await;
        }));
    }
}
