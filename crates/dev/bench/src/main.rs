//! `mainstay-bench`: measures the figures of `docs/performance.md`, and writes that page.
//!
//! Each sub-command measures one subject. It prints tables and the goals that they meet, and with
//! `--record FOLDER` writes them to `FOLDER/SUBJECT.json`. `all` runs all subjects, and `page`
//! renders the page from the records. Build with `--release`, and run on an idle machine: figures
//! are comparable only within one run.
#![expect(
    clippy::print_stdout,
    reason = "figures on standard output are what this program is started for"
)]

mod access;
mod all;
mod api;
mod catalog_http;
mod catalogs;
mod cluster;
mod cluster_catalog;
mod counted;
mod extensions;
mod fan_out;
mod figure;
mod go_client;
mod goals;
mod images;
mod launch;
mod memory;
mod multiplex;
mod operators;
mod page;
mod process;
mod record;
mod redb_engine;
mod registry;
mod resolver;
mod rules;
mod servers;
mod store;
mod table;
mod webhook;
mod workloads;

use anyhow::Context as _;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use record::Run;
use std::path::PathBuf;
use table::Report;

/// Measures Mainstay's parts, and writes `docs/performance.md`.
#[derive(Parser)]
#[command(name = "mainstay-bench")]
struct Arguments {
    #[command(subcommand)]
    subject: Subject,
    /// Also write the results to `FOLDER/SUBJECT.json`.
    #[arg(long, value_name = "FOLDER", global = true)]
    record: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Subject {
    /// The object store: the journal, compared with redb behind the same interface.
    Store(store::Arguments),
    /// A whole cluster in a process: start, idle usage, installation of an operator, stop.
    Cluster(cluster::Arguments),
    /// API servers over TLS: ours, and a real one if available.
    Api(servers::Arguments),
    /// API servers under the load of a client written in Go: ours and a real one.
    GoClient(go_client::Arguments),
    /// Memory of the allocator, compared with a build with another one.
    Memory(memory::Arguments),
    /// Creates with a webhook, compared with a real server if available.
    Webhook(webhook::Arguments),
    /// Many Deployments from apply until all are Available, and their usage when idle.
    Workloads(workloads::Arguments),
    /// RBAC authorization with many roles and bindings.
    Access(access::Arguments),
    /// CEL rules of CRDs: evaluation compared with kube-cel, and a CRD with many rules.
    Rules(rules::Arguments),
    /// Catalogs and bundle folders: read, validated, rendered and listed, compared with libyaml and
    /// opm.
    Catalogs(catalogs::Arguments),
    /// The registry API of a served catalog, from the start of the program.
    Registry(registry::Arguments),
    /// The HTTP catalog API of a published catalog: processor time for each request.
    CatalogHttp(catalog_http::Arguments),
    /// A ClusterCatalog of a published catalog: create, requests, poll, restart.
    ClusterCatalog(cluster_catalog::Arguments),
    /// ClusterExtensions: created, upgraded, at rest, beside changing catalogs, and after a restart.
    Extensions(extensions::Arguments),
    /// Images pushed, pulled and unpacked, compared with skopeo.
    Images(images::Arguments),
    /// Resolution: published catalogs, recorded resolutions, explanations, and hard cases.
    Resolver(resolver::Arguments),
    /// Operators: installed sequentially and concurrently, waiting, failing, and after a restart.
    Operators(operators::Arguments),
    /// Many operators for all of many namespaces: controllers as a process of their own, and all in
    /// one.
    Fleet(operators::fleet::Arguments),
    /// All subjects, each in a process of its own.
    All(all::Arguments),
    /// Render the performance page from records.
    Page(page::Arguments),
    #[command(hide = true)]
    Meter(catalogs::Meter),
}

impl Subject {
    async fn run(&self) -> anyhow::Result<Report> {
        match self {
            Self::Store(arguments) => store::run(arguments).await,
            Self::Cluster(arguments) => cluster::run(arguments).await,
            Self::Api(arguments) => servers::run(arguments).await,
            Self::GoClient(arguments) => go_client::run(arguments).await,
            Self::Memory(arguments) => memory::run(arguments).await,
            Self::Webhook(arguments) => webhook::run(arguments).await,
            Self::Workloads(arguments) => workloads::run(arguments).await,
            Self::Access(arguments) => access::run(arguments).await,
            Self::Rules(arguments) => rules::run(arguments),
            Self::Catalogs(arguments) => catalogs::run(arguments),
            Self::Registry(arguments) => registry::run(arguments).await,
            Self::CatalogHttp(arguments) => catalog_http::run(arguments).await,
            Self::ClusterCatalog(arguments) => cluster_catalog::run(arguments).await,
            Self::Extensions(arguments) => extensions::run(arguments).await,
            Self::Images(arguments) => images::run(arguments).await,
            Self::Resolver(arguments) => resolver::run(arguments),
            Self::Operators(arguments) => operators::run(arguments).await,
            Self::Fleet(arguments) => operators::fleet::run(arguments).await,
            Self::All(_) | Self::Page(_) | Self::Meter(_) => {
                anyhow::bail!("this is no subject to measure")
            }
        }
    }
}

fn main() -> anyhow::Result<()> {
    let command = Arguments::command();
    let matches = command.clone().get_matches();
    let Arguments { subject, record } = Arguments::from_arg_matches(&matches)?;
    let (name, chosen) = matches.subcommand().context("no subject was named")?;
    let command = command.find_subcommand(name).context("no subject was named")?;
    match &subject {
        Subject::Page(arguments) => return page::run(arguments),
        Subject::Meter(meter) => return catalogs::run_meter(meter),
        Subject::All(arguments) => return all::run(arguments, record.as_deref()),
        Subject::Resolver(arguments) if resolver::run_hard(arguments)? => return Ok(()),
        Subject::Catalogs(arguments) if catalogs::write_only(arguments)? => return Ok(()),
        _ => {}
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let run = Run::begin(name);
    let report = runtime.block_on(subject.run())?;
    let done = run.end(report, command, chosen)?;
    println!("{}", done.report);
    let goals = goals::of_subject(&done);
    if !goals.is_empty() {
        println!("{goals}");
    }
    if let Some(folder) = record {
        done.save(&folder)?;
    }
    Ok(())
}
