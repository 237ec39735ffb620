//! The controllers and simulated nodes that make a bare Kubernetes API behave like a cluster.
//!
//! Namespaces get their default objects and are emptied when they are deleted, dependents of deleted
//! owners are collected, Deployments roll out through `ReplicaSets` to Pods, Pods are scheduled on
//! simulated nodes and become Ready, Jobs complete, Services find their Pods, cluster roles gather
//! rules. Everything goes through [`Cluster`], so it runs against any Kubernetes API that lacks its
//! own controllers.
//!
//! ```text
//! caches (projections) ─► queue of keys ─► observe: live object + caches ─► decide (pure) ─► apply
//! ```
//!
//! Every decision is a function of plain data in a file of its own and table-tested; nothing polls,
//! and a world that is as it should be is not written to. What happens to containers is described
//! in [`simulate`].
//!
//! What this does not do: real containers, volumes behind claims, autoscalers.

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
pub use crate::credentials::{Credentials, Unsigned};
use crate::views::Views;
use futures::future::{BoxFuture, join_all};
use mainstay_client::{Cluster, Recorder};
use mainstay_clock::Clock;
use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

/// How the simulated part of a cluster looks.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many nodes there are; zero leaves every pod pending.
    pub nodes: usize,
    /// What time it is.
    pub clock: Clock,
    /// The certificates (PEM) that clients in pods shall trust: `ca.crt` of the ConfigMap
    /// `kube-root-ca.crt` in every namespace. None leaves that ConfigMap out.
    pub root_ca: Option<String>,
    /// Signs certificates and tokens. None leaves requests for certificates and Secrets for tokens to
    /// others.
    pub credentials: Option<Arc<dyn Credentials>>,
    /// The version that nodes report, such as `v1.35.0`.
    pub kubelet_version: String,
    /// A label of pods that asks for a behaviour where the annotation
    /// [`simulate::ANNOTATION`] does not: for manifests whose annotations are not to be touched.
    pub behaviour_label: Option<String>,
    /// The behaviour of pods that ask for none; without it they are ready at once, and end well if
    /// they are of a Job.
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
    /// Behind a lock only so that threads can share this.
    ended: Mutex<Vec<BoxFuture<'static, ()>>>,
}

impl Workloads {
    /// Starts everything. Must be called inside a tokio runtime.
    pub fn start(cluster: Cluster, options: Options) -> Self {
        let cluster = cluster.named("kube-controller-manager");
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
            // Nobody may be waiting.
            let _ = all.send(true);
        });
        Self { stop: stop.drop_guard(), synced, ended: Mutex::new(started.ended) }
    }

    /// Returns once every controller has its caches complete and works.
    pub async fn synced(&self) {
        let mut synced = self.synced.clone();
        // Fails only when the runtime is ending.
        let _ = synced.wait_for(|synced| *synced).await;
    }

    /// Ends every controller and returns when they have ended. Dropping the handle ends them too,
    /// without waiting.
    pub async fn shutdown(self) {
        drop(self.stop);
        join_all(self.ended.into_inner()).await;
    }
}

/// Collects what has been started, for [`Workloads`].
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
