//! `mainstay-bench`: the figures of `docs/performance.md`, to be taken again on any machine.
//!
//! One sub-command per subject; each prints a table. Build it with `--release`, and run it on a
//! machine that does nothing else: figures are comparable only within one run.
//!
//! What it does not do: judge. Goals stand beside the figures in the documentation.
#![expect(
    clippy::print_stdout,
    reason = "a table on standard output is all that this program makes"
)]

mod access;
mod all;
mod api;
mod catalogs;
mod cluster;
mod fan_out;
mod figure;
mod images;
mod launch;
mod multiplex;
mod operators;
mod process;
mod redb_engine;
mod registry;
mod resolver;
mod rules;
mod store;
mod table;
mod webhook;
mod workloads;

use clap::{Parser, Subcommand};

/// Measures Mainstay's parts.
#[derive(Parser)]
#[command(name = "mainstay-bench")]
struct Arguments {
    #[command(subcommand)]
    subject: Subject,
}

#[derive(Subcommand)]
enum Subject {
    /// The object store: the journal beside redb behind the same seam.
    Store(store::Arguments),
    /// A Kubernetes API server of any make, over TLS.
    Api(api::Arguments),
    /// A whole cluster in a process: start, idle, an operator installed, stop.
    Cluster(cluster::Arguments),
    /// Creates that a webhook is asked about, on one or several running servers.
    Webhook(webhook::Arguments),
    /// Many Deployments from apply to all Available, and what they cost when nothing happens.
    Workloads(workloads::Arguments),
    /// Decisions about who may do what, with many roles and bindings.
    Access(access::Arguments),
    /// Rules of definitions: evaluated beside kube-cel, and a definition with many of them.
    Rules(rules::Arguments),
    /// Catalogs and bundle folders read, judged, rendered and listed, beside libyaml and opm.
    Catalogs(catalogs::Arguments),
    /// Resolution: published catalogs, recorded worlds, explanations, worlds made to be hard.
    Resolver(resolver::Arguments),
    /// Operators installed one after the other and at once, waiting, failing, found again.
    Operators(operators::Arguments),
    /// Many operators for all of many namespaces: the controllers beside an API, and all in one.
    Fleet(operators::fleet::Arguments),
    /// The registry API of a served catalog, from the start of the program on.
    Registry(registry::Arguments),
    /// Images pushed, pulled and unpacked, beside skopeo.
    Images(images::Arguments),
    /// The store, the API and the cluster, against our own server, and beside a real one where there is one.
    All(all::Arguments),
}

fn main() -> anyhow::Result<()> {
    let subject = Arguments::parse().subject;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        match subject {
            Subject::Store(arguments) => store::run(&arguments).await,
            Subject::Api(arguments) => api::run(&arguments).await,
            Subject::Cluster(arguments) => cluster::run(&arguments).await,
            Subject::Webhook(arguments) => webhook::run(&arguments).await,
            Subject::Workloads(arguments) => workloads::run(&arguments).await,
            Subject::Access(arguments) => access::run(&arguments).await,
            Subject::Rules(arguments) => rules::run(&arguments),
            Subject::Catalogs(arguments) => catalogs::run(&arguments),
            Subject::Resolver(arguments) => resolver::run(&arguments),
            Subject::Operators(arguments) => operators::run(&arguments).await,
            Subject::Fleet(arguments) => operators::fleet::run(&arguments).await,
            Subject::Registry(arguments) => registry::run(&arguments).await,
            Subject::Images(arguments) => images::run(&arguments).await,
            Subject::All(arguments) => all::run(&arguments).await,
        }
    })
}
