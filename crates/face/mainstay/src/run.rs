//! `mainstay run`: operators on a cluster that is there.
//!
//! One process of several works, the one that holds the Lease `mainstay` in the namespace of the
//! lifecycle manager; the others wait. The worker first sees that definitions and standard
//! namespaces are there, then runs the controllers until it is told to stop or loses the Lease.

mod health;

use self::health::{Health, Standing};
use crate::embedded::{chain, io, pods};
use crate::live::{self, Reach};
use crate::stop::Stop;
use crate::{images, layout, network};
use mainstay_cause::{Cause, Place};
use mainstay_classic::{Classic, FolderCatalog, Images, Timeouts};
use mainstay_cli::config::Run;
use mainstay_cli::exit::Failure;
use mainstay_cli::report::{Report, milliseconds};
use mainstay_client::{Cluster, Election, ListParams};
use mainstay_clock::Clock;
use mainstay_object::{NamespacedName, known};
use std::fs::{File, OpenOptions, TryLockError};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// The Lease.
const NAME: &str = "mainstay";
/// How long connecting may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Works on the cluster that the arguments name until a signal.
pub(crate) async fn run(run: Run, report: Report) -> Result<(), Failure> {
    let mut signals = Stop::listen()?;
    let clock = Clock::system();
    let listener = TcpListener::bind(run.listen).await.map_err(|error| {
        Failure::usage(
            Cause::new(format!("health and metrics cannot be served at {}", run.listen))
                .because(io(&error))
                .remedy("choose another address with --listen ADDR:PORT; port 0 picks a free one"),
        )
    })?;
    let address = listener
        .local_addr()
        .map_err(|error| Cause::new("the port has no address").because(io(&error)))?;
    let _lock = lock(&run.data).map_err(Failure::usage)?;
    let images = images::pulled(&run.data, clock).map_err(Failure::usage)?;
    let reach = Reach {
        kubeconfig: run.kubeconfig.as_ref(),
        context: run.context.as_deref(),
        patience: PATIENCE,
        name: concat!("mainstay/", env!("CARGO_PKG_VERSION")),
        otherwise: "name a kubeconfig with --kubeconfig FILE, or bring up a cluster with `mainstay up`",
    };
    let (cluster, url) = live::reached(&reach).await?;
    report.say(format!("cluster     {url}"));
    report.say(format!("health      http://{address}/healthz /readyz /metrics"));

    let stop = CancellationToken::new();
    let health = Health::new();
    let port = tokio::spawn(health::serve(listener, health.clone(), stop.clone()));
    let manager = run.profile.manager_namespace();
    let leading = async {
        let seen = stop.run_until_cancelled(async {
            unrivalled(&cluster).await?;
            // The Lease has to be somewhere.
            layout::namespace(&cluster, manager).await
        });
        match seen.await {
            Some(seen) => seen?,
            None => return Ok(()),
        }
        let key = NamespacedName::new(manager, NAME);
        let election = Election::new(cluster.clone(), key, identity(&run.data), clock);
        let waits = |holder: &str| {
            report.say(format!("waiting     {holder} works; this one takes over when it ends"));
            health.set(Standing::Waiting);
        };
        let work = |term: CancellationToken| {
            let (run, cluster, images) = (&run, &cluster, images.clone());
            let (health, report) = (&health, &report);
            async move {
                health.set(Standing::Starting);
                let classic = tokio::select! {
                    classic = begin(run, cluster, images, clock) => classic?,
                    () = term.cancelled() => return Ok(()),
                };
                tokio::select! {
                    () = classic.synced() => {
                        health.set(Standing::Working(Arc::new(classic.metrics())));
                        report.say(format!("ready       after {}", milliseconds(clock.elapsed())));
                        term.cancelled().await;
                    }
                    () = term.cancelled() => {}
                }
                classic.shutdown().await;
                health.set(Standing::Starting);
                Ok(())
            }
        };
        election.lead(&stop, waits, work).await
    };
    let asked = async {
        signals.asked().await;
        stop.cancel();
    };
    let (result, ()) = tokio::join!(
        async {
            // Before the first term there is nothing to be ended in order.
            let result: Result<(), Cause> = leading.await;
            stop.cancel();
            result
        },
        async {
            tokio::select! { () = asked => {}, () = stop.cancelled() => {} }
        }
    );
    // A port that panicked has ended as well; the panic is in the log.
    let _ = port.await;
    result?;
    report.say("stopped");
    Ok(())
}

/// Sees that the cluster has what the controllers need, and starts them.
async fn begin(
    run: &Run,
    cluster: &Cluster,
    images: Images,
    clock: Clock,
) -> Result<Classic, Cause> {
    layout::definitions(cluster).await?;
    layout::standard(cluster, run.profile).await?;
    layout::namespace(cluster, &run.namespace).await?;
    let catalogs = run.catalogs.iter().map(|it| FolderCatalog {
        namespace: run.namespace.clone(),
        name: it.name.clone(),
        folder: it.folder.clone(),
        served: None,
    });
    let options = mainstay_classic::Options {
        clock,
        global_namespace: run.namespace.clone(),
        catalogs: catalogs.collect(),
        cache: Some(run.data.join("catalogs")),
        images: Some(images),
        serve: None,
        surroundings: network::surroundings(&run.network),
        timeouts: Timeouts {
            plan: run.plan_timeout,
            unpack: run.unpack_timeout,
            ..Timeouts::default()
        },
        protected: run.protected.clone(),
    };
    let classic = Classic::start_with(cluster, options, pods(run.catalog_mode));
    for catalog in &run.catalogs {
        layout::catalog_source(cluster, &run.namespace, &catalog.name).await?;
    }
    Ok(classic)
}

/// Refuses to work beside Operator Lifecycle Manager: each would undo what the other does.
async fn unrivalled(cluster: &Cluster) -> Result<(), Cause> {
    let params = ListParams::labels("app in (olm-operator, catalog-operator)");
    let found = cluster.list(&known::DEPLOYMENT, None, &params).await.map_err(|error| {
        Cause::new("it cannot be seen whether Operator Lifecycle Manager runs on the cluster")
            .because(chain(&error))
            .remedy("work as somebody who may do everything on the cluster")
    })?;
    let rivals = found.items.iter().filter(|it| it.i64(&["spec", "replicas"]) != Some(0));
    let causes: Vec<Cause> = rivals
        .map(|it| {
            let (namespace, name) = (it.namespace(), it.name());
            Cause::new(format!("the Deployment {namespace}/{name} is of it")).remedy(format!(
                "end it: kubectl --namespace {namespace} scale deployment {name} --replicas=0"
            ))
        })
        .collect();
    if causes.is_empty() {
        return Ok(());
    }
    Err(Cause::new("Operator Lifecycle Manager works on this cluster, and only one may")
        .because_all(causes))
}

/// Takes the data folder for this process. The lock goes with the file.
fn lock(folder: &Path) -> Result<File, Cause> {
    let file = folder.join("lock");
    let refused = |error: &std::io::Error| {
        Cause::new("the data folder cannot be used")
            .at(Place::file(&file))
            .because(io(error))
            .remedy("check who owns the folder, or choose another with --data-dir DIR")
    };
    std::fs::create_dir_all(folder).map_err(|error| refused(&error))?;
    let opened = OpenOptions::new().write(true).create(true).truncate(false).open(&file);
    let lock = opened.map_err(|error| refused(&error))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(Cause::new("another process uses the data folder")
            .at(Place::file(folder))
            .remedy("end that one, or give this one a folder of its own with --data-dir DIR")),
        Err(TryLockError::Error(error)) => Err(refused(&error)),
    }
}

/// Who this is among those that may work: the machine, and the data folder, which one process uses at
/// a time. A process that was killed and comes again is the same one, and need not wait.
fn identity(folder: &Path) -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let mut hasher = DefaultHasher::new();
    folder.canonicalize().unwrap_or_else(|_| folder.to_owned()).hash(&mut hasher);
    format!("{}_{:016x}", host.trim(), hasher.finish())
}
