//! `mainstay run`: the controllers against an existing cluster.
//!
//! Of several processes, the leader holds the Lease `mainstay` in the namespace of the lifecycle manager;
//! the others wait. The leader first applies CustomResourceDefinitions and standard namespaces. Then it
//! runs the controllers until a stop signal, or until it loses the Lease.

mod access;
mod catalogs;
mod certificate_files;
mod packages;
mod probes;
mod refusals;
mod replica;

use self::access::AccessReviews;
use self::refusals::{refuse_beside_olm, refuse_embedded_controllers};
use crate::cluster_catalogs::{contents_of, follow_folders};
use crate::embedded::{catalog_pods, chain, io};
use crate::health::{Health, HealthState};
use crate::remote::{self, ClusterSelector};
use crate::stop::StopSignals;
use crate::subsystems::{Selected, upstream_certificates};
use crate::supervise::Startup;
use crate::{images, layout, network, operator_hub};
use mainstay_cause::{Cause, FileLocation};
use mainstay_classic::{
    CatalogContents, CatalogPods, Classic, DefaultSources, FolderCatalog, NetworkSettings, Timeouts,
};
use mainstay_cli::config::{PodImages, RunSettings};
use mainstay_client::{Cluster, Election, LeaseTerm, ObjectList};
use mainstay_clock::Clock;
use mainstay_command::exit::CommandFailure;
use mainstay_command::report::{ProgressReport, milliseconds};
use mainstay_controller::RunningSubsystems;
use mainstay_extensions::Extensions;
use mainstay_images::ImageSources;
use mainstay_object::{NamespacedName, builtin};
use mainstay_registry::ServedCatalog;
use std::fs::{File, TryLockError};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// A timeout that never elapses in practice.
const FOREVER: Duration = Duration::from_hours(24 * 36_500);
/// How long connecting, and the first response, may take.
const TIMEOUT: Duration = Duration::from_secs(30);
/// The folder, in the data folder, with copies of the content of catalogs.
const CATALOG_COPIES: &str = "catalogs";
/// The interval between attempts to start the controllers while the API is unreachable.
const RETRY_INTERVAL: Duration = Duration::from_secs(2);

/// Runs the controllers on the cluster that the arguments name, until a stop signal.
pub(crate) async fn run(
    run: RunSettings,
    report: ProgressReport,
    startup: Startup,
) -> Result<(), CommandFailure> {
    let mut signals = StopSignals::listen()?;
    let clock = Clock::system();
    let listener = TcpListener::bind(run.listen).await.map_err(|error| {
        CommandFailure::usage(
            Cause::new(format!("health and metrics cannot be served at {}", run.listen))
                .because(io(&error))
                .remedy(
                    "choose another address with --listen ADDR:PORT; port 0 selects a free port",
                ),
        )
    })?;
    let address = listener
        .local_addr()
        .map_err(|error| Cause::new("the port has no address").because(io(&error)))?;
    let tls_settings = run.tls_files.as_ref();
    let tls_settings =
        tls_settings.map(|files| certificate_files::server_config(files, &run.tls)).transpose();
    let tls_settings = tls_settings.map_err(CommandFailure::usage)?;
    let manager = run.profile.manager_namespace();
    let certificates = upstream_certificates(run.profile);
    let selected =
        Selected::parse(&run.controllers, certificates).map_err(CommandFailure::usage)?;
    let runs_classic = selected.contains(&mainstay_classic::SUBSYSTEM);
    let packages_server = if runs_classic {
        packages::PackagesListener::open(&run.packages, manager, clock).await?
    } else {
        None
    };
    let _lock = lock_data_folder(&run.data).map_err(CommandFailure::usage)?;
    let images = images::pulled(&run.data, clock).map_err(CommandFailure::usage)?;
    let surroundings = network::surroundings(&run.network).map_err(CommandFailure::usage)?;
    let selector = ClusterSelector {
        cluster: &run.cluster,
        timeout: TIMEOUT,
        name: concat!("mainstay/", env!("CARGO_PKG_VERSION")),
        remedy: "name a kubeconfig with --kubeconfig FILE, or start a cluster with `mainstay up`",
    };
    let (cluster, url) = tokio::select! {
        connected = remote::connect(&selector) => connected?,
        () = signals.wait() => return Ok(()),
    };
    startup.done();
    report.say(format!("cluster     {url}"));
    let scheme = if tls_settings.is_some() { "https" } else { "http" };
    report.say(format!("health      {scheme}://{address}/healthz /readyz /metrics"));
    for note in &run.notes {
        report.say(format!("note        {note}"));
    }

    let stop = CancellationToken::new();
    let health = Health::new();
    let tls_and_access = tls_settings
        .map(|settings| (settings, Arc::new(AccessReviews::new(cluster.clone(), clock))));
    let probe_server =
        tokio::spawn(probes::serve(listener, health.clone(), tls_and_access, stop.clone()));
    let (packages_server, packages_task) =
        packages_server.map(|listener| listener.serve(&run.tls, stop.clone())).transpose()?.unzip();
    if runs_classic && packages_server.is_none() {
        report.say("packages    not served: name the address of this process for the cluster with --packages-address IP");
    }
    let (run, selected) = (&run, &selected);
    let election = async {
        let checks = stop.run_until_cancelled(async {
            // First, because a cluster of `mainstay up` also has Deployments with the names of OLM's.
            refuse_embedded_controllers(&cluster).await?;
            refuse_beside_olm(&cluster, selected).await?;
            // The namespace of the Lease.
            layout::apply_namespace(&cluster, manager).await
        });
        match checks.await {
            Some(checks) => checks?,
            None => return Ok(()),
        }
        // Before the election, because a port that is not free ends the process.
        let opened = if selected.contains(&mainstay_extensions::SUBSYSTEM) {
            let open = || catalogs::Server::open(run, &cluster, clock, &stop);
            let open = retry_while_unreachable(&cluster, RETRY_INTERVAL, open);
            let Some(server) = stop.run_until_cancelled(open).await else { return Ok(()) };
            Some(server?)
        } else {
            None
        };
        let (catalog_server, turns) = (opened.as_ref(), &replica::Turns::default());
        let key = NamespacedName::new(manager, layout::LEASE);
        let leader_election = Election::new(cluster.clone(), key, identity(&run.data), clock);
        let report_waiting = |holder: &str| {
            report.say(format!("waiting     {holder} leads; this process takes over when it ends"));
            health.set(HealthState::Waiting);
            turns.wait();
        };
        let work = |term: LeaseTerm| {
            let (cluster, images) = (term.fenced(&cluster), images.clone());
            let surroundings = surroundings.clone();
            let (health, report, packages_server) = (&health, &report, &packages_server);
            async move {
                health.set(HealthState::Starting);
                let prepare =
                    || prepare_cluster(run, selected, &cluster, packages_server.is_some(), report);
                let defaults = tokio::select! {
                    defaults = retry_while_unreachable(&cluster, RETRY_INTERVAL, prepare) => defaults?,
                    () = term.cancelled() => return Ok(()),
                };
                let _turn = turns.lead().await;
                let setup = Setup { run, selected, images, surroundings, clock };
                let Started { subsystems, catalog_contents } =
                    setup.start(&cluster, defaults, catalog_server, &term).await;
                if let Some(server) = catalog_server {
                    report
                        .say(format!("catalogs    https://{}/catalogs", server.external_address()));
                }
                let ready = async {
                    retry_while_unreachable(&cluster, RETRY_INTERVAL, || async {
                        if let Some(server) = catalog_server {
                            server.publish(&cluster).await?;
                        }
                        create_catalogs(run, selected, &cluster).await
                    })
                    .await?;
                    subsystems.synced().await;
                    Ok(true)
                };
                let ready = tokio::select! {
                    ready = ready => ready,
                    () = term.cancelled() => Ok(false),
                };
                if let Ok(true) = ready {
                    health.set(HealthState::Working(subsystems.monitors()));
                    report.say(format!("ready       after {}", milliseconds(clock.elapsed())));
                    let serve = async {
                        if let (Some(packages_server), Some(catalog_contents)) =
                            (packages_server, catalog_contents)
                        {
                            let say = |line: &str| report.say(line);
                            packages_server
                                .work(&cluster, catalog_contents, &run.namespace, term.token(), say)
                                .await;
                        }
                    };
                    // Stopping in order takes a while, in which another process may become the leader.
                    let end_of_term = async {
                        term.cancelled().await;
                        health.set(HealthState::Starting);
                    };
                    let maintain_endpoints = async {
                        if let Some(server) = catalog_server {
                            server.maintain_endpoints(&cluster, true, term.token()).await;
                        }
                    };
                    tokio::join!(serve, end_of_term, maintain_endpoints);
                }
                subsystems.shutdown().await;
                ready.map(drop)
            }
        };
        let lead = async {
            let result = leader_election.lead(&stop, report_waiting, work).await;
            stop.cancel();
            result
        };
        let serve_as_replica = async {
            if let Some(server) = catalog_server.filter(|server| server.is_reachable()) {
                let start = |end: &CancellationToken| {
                    let folders = folder_catalogs(run, true);
                    follow_folders(&folders, Some(run.data.join(CATALOG_COPIES)), clock, end);
                    let (images, folders) = (images.clone(), contents_of(&folders));
                    let options = server.options(run, selected.features(), images, folders, clock);
                    Extensions::start_replica(&cluster, options)
                };
                replica::serve_while_waiting(server, turns, &cluster, &stop, start).await;
            }
        };
        let (result, ()) = tokio::join!(lead, serve_as_replica);
        if let Some(server) = opened {
            server.close(&cluster).await;
        }
        result
    };
    let signal_received = async {
        signals.wait().await;
        stop.cancel();
    };
    let (result, ()) = tokio::join!(
        async {
            // Before the first term no controllers run that would have to stop in order.
            let result: Result<(), Cause> = Box::pin(election).await;
            stop.cancel();
            result
        },
        async {
            tokio::select! { () = signal_received => {}, () = stop.cancelled() => {} }
        }
    );
    // A server task that panicked has ended as well; the panic is in the log.
    let _ = probe_server.await;
    if let Some(packages_task) = packages_task {
        let _ = packages_task.await;
    }
    result?;
    report.say("stopped");
    Ok(())
}

/// What the controllers start with.
struct Setup<'a> {
    run: &'a RunSettings,
    selected: &'a Selected,
    images: ImageSources,
    surroundings: NetworkSettings,
    clock: Clock,
}

/// The controllers of a term.
struct Started {
    subsystems: RunningSubsystems,
    catalog_contents: Option<CatalogContents>,
}

impl Setup<'_> {
    /// Starts the selected subsystems on a prepared cluster.
    async fn start(
        self,
        cluster: &Cluster,
        defaults: Option<DefaultSources>,
        catalog_server: Option<&catalogs::Server>,
        term: &LeaseTerm,
    ) -> Started {
        let Self { run, selected, images, surroundings, clock } = self;
        let folder_catalogs = folder_catalogs(run, catalog_server.is_some());
        let mut subsystems = RunningSubsystems::default();
        let mut catalog_contents = None;
        if selected.contains(&mainstay_classic::SUBSYSTEM) {
            let options = mainstay_classic::Options {
                catalogs: folder_catalogs.clone(),
                images: Some(images.clone()),
                surroundings,
                defaults,
                ..classic_options(run, clock)
            };
            let simulated = has_simulated_nodes(cluster).await;
            let catalog_pods = CatalogPods { simulated, ..catalog_pods_with_images(run) };
            let classic = Classic::start_with(cluster, options, catalog_pods);
            catalog_contents = Some(classic.catalogs());
            subsystems.add(classic);
        } else {
            let copies = Some(run.data.join(CATALOG_COPIES));
            follow_folders(&folder_catalogs, copies, clock, term.token());
        }
        if let Some(server) = catalog_server {
            let folders = contents_of(&folder_catalogs);
            let options = server.options(run, selected.features(), images, folders, clock);
            subsystems.add(Extensions::start(cluster, options));
        }
        Started { subsystems, catalog_contents }
    }
}

/// Retries a step of the startup while the API is unreachable, as that is no error of the step.
async fn retry_while_unreachable<T, Fut: Future<Output = Result<T, Cause>>>(
    cluster: &Cluster,
    pause: Duration,
    step: impl Fn() -> Fut,
) -> Result<T, Cause> {
    loop {
        let cause = match step().await {
            Ok(done) => return Ok(done),
            Err(cause) => cause,
        };
        match cluster.get_raw("/version").await {
            Err(error) if error.is_passing() => {
                tracing::warn!(%cause, "the API is unreachable, and the controllers cannot start yet");
            }
            _ => return Err(cause),
        }
        tokio::time::sleep(pause).await;
    }
}

/// Applies the objects that the controllers need; returns the default catalogs to reconcile.
async fn prepare_cluster(
    run: &RunSettings,
    selected: &Selected,
    cluster: &Cluster,
    serves_packages: bool,
    report: &ProgressReport,
) -> Result<Option<DefaultSources>, Cause> {
    selected.install(cluster).await?;
    layout::apply_namespace(cluster, &run.namespace).await?;
    if selected.contains(&mainstay_extensions::SUBSYSTEM) {
        // Pull secrets are in one, and the releases of extensions in the other.
        layout::apply_namespace(cluster, run.profile.catalogd_namespace()).await?;
        layout::apply_namespace(cluster, run.profile.operator_controller_namespace()).await?;
    }
    if !selected.contains(&mainstay_classic::SUBSYSTEM) {
        return Ok(None);
    }
    if !serves_packages {
        match packages::remove_stale_registration(cluster, run.profile.manager_namespace()).await {
            Ok(true) => {
                report.say(
                    "packages    not registered any more: the process that served them has ended",
                );
            }
            Ok(false) => {}
            Err(error) if error.is_forbidden() => {
                tracing::error!(%error, "a leftover registration of packages cannot be read");
            }
            Err(error) => {
                return Err(Cause::new("the leftover registration of packages cannot be deleted")
                    .because(chain(&error)));
            }
        }
    }
    operator_hub::ensure_crd(cluster, &run.defaults).await?;
    layout::apply_standard_objects(cluster, run.profile).await?;
    operator_hub::default_sources(cluster, &run.defaults, run.profile, |line| report.say(line))
        .await
}

/// Creates a CatalogSource and a ClusterCatalog for each catalog folder, as the subsystems need them.
async fn create_catalogs(
    run: &RunSettings,
    selected: &Selected,
    cluster: &Cluster,
) -> Result<(), Cause> {
    for catalog in &run.catalogs {
        if selected.contains(&mainstay_classic::SUBSYSTEM) {
            layout::apply_catalog_source(cluster, &run.namespace, &catalog.name).await?;
        }
        if selected.contains(&mainstay_extensions::SUBSYSTEM) {
            layout::create_cluster_catalog(cluster, &catalog.name).await?;
        }
    }
    Ok(())
}

/// The catalog folders. If `served`, the server of ClusterCatalogs gets their content.
fn folder_catalogs(run: &RunSettings, served: bool) -> Vec<FolderCatalog> {
    let catalogs = run.catalogs.iter().map(|catalog| FolderCatalog {
        namespace: run.namespace.clone(),
        name: catalog.name.clone(),
        folder: catalog.folder.clone(),
        served: served.then(|| Arc::new(ServedCatalog::new(&*catalog.name))),
        address: None,
    });
    catalogs.collect()
}

/// The options of the `classic` controllers that the arguments set.
fn classic_options(run: &RunSettings, clock: Clock) -> mainstay_classic::Options {
    mainstay_classic::Options {
        cache: Some(run.data.join(CATALOG_COPIES)),
        timeouts: Timeouts {
            plan: run.plan_timeout,
            unpack: if run.unpack_timeout.is_zero() { FOREVER } else { run.unpack_timeout },
            ..Timeouts::default()
        },
        protected: run.protected.clone(),
        ..mainstay_classic::Options::new(clock, &run.namespace)
    }
}

/// Where catalogs are served, and the images of their pods.
fn catalog_pods_with_images(run: &RunSettings) -> CatalogPods {
    let mut catalog_pods = catalog_pods(run.catalog_mode);
    let PodImages { config_map, opm, util, any_user } = run.images.clone();
    catalog_pods.config_map_image = config_map.unwrap_or(catalog_pods.config_map_image);
    catalog_pods.opm_image = opm.unwrap_or(catalog_pods.opm_image);
    catalog_pods.util_image = util.unwrap_or(catalog_pods.util_image);
    catalog_pods.any_user = any_user;
    catalog_pods
}

/// Whether the cluster's nodes are simulated nodes of `mainstay up`, which run no containers. Returns false
/// if the nodes cannot be listed.
async fn has_simulated_nodes(cluster: &Cluster) -> bool {
    const RUNTIME: [&str; 3] = ["status", "nodeInfo", "containerRuntimeVersion"];
    let first_node = ObjectList { limit: 1, ..ObjectList::default() };
    let list = async { cluster.list(&builtin::NODE, None, &first_node).await };
    let Ok(Ok(nodes)) = tokio::time::timeout(TIMEOUT, list).await else { return false };
    let runtime = nodes.items.first().and_then(|node| node.str(&RUNTIME));
    runtime.is_some_and(|runtime| runtime.starts_with("simulated://"))
}

/// Locks the data folder for this process. Dropping the file releases the lock.
fn lock_data_folder(folder: &Path) -> Result<File, Cause> {
    let file = folder.join("lock");
    let refused = |error: &std::io::Error| {
        Cause::new("the data folder cannot be used")
            .at(FileLocation::file(&file))
            .because(io(error))
            .remedy("check who owns the folder, or choose another with --data-dir DIR")
    };
    if let Some(warning) =
        mainstay_files::claim_data_folder(folder).map_err(|error| refused(&error))?
    {
        tracing::warn!("{warning}");
    }
    let lock = mainstay_files::open_lock(&file).map_err(|error| refused(&error))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(Cause::new("another process uses the data folder")
            .at(FileLocation::file(folder))
            .remedy("stop that process, or choose another folder with --data-dir DIR")),
        Err(TryLockError::Error(error)) => Err(refused(&error)),
    }
}

/// The holder identity of this process: the host name and the data folder, which one process at a time
/// locks. A process that was killed and restarts has the same identity, and need not wait for the Lease.
fn identity(folder: &Path) -> String {
    format!("{}_{}", host_name(), data_folder_hash(folder))
}

fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

/// A hash of the host name and the path of the data folder, 16 hexadecimal digits.
fn data_folder_hash(folder: &Path) -> String {
    let mut hasher = DefaultHasher::new();
    host_name().hash(&mut hasher);
    folder.canonicalize().unwrap_or_else(|_| folder.to_owned()).hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{Request, Response};
    use kube::client::Body;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// An API that responds from the third request on.
    fn cluster_unreachable_at_first(requests: &Arc<AtomicU32>) -> Cluster {
        let requests = Arc::clone(requests);
        let service = tower::service_fn(move |_: Request<Body>| {
            let answers = requests.fetch_add(1, Ordering::SeqCst) >= 2;
            async move {
                let answer = Response::new(Body::from(b"{}".to_vec()));
                answers.then_some(answer).ok_or_else(|| std::io::Error::other("nobody listens"))
            }
        });
        Cluster::new(kube::Client::new(service, "default"))
    }

    #[tokio::test]
    async fn start_is_retried_while_the_api_is_unreachable_and_fails_when_it_responds() {
        let requests = Arc::default();
        let cluster = cluster_unreachable_at_first(&requests);
        let attempts = AtomicU32::new(0);
        let step = || async {
            let before = attempts.fetch_add(1, Ordering::SeqCst);
            if before == 0 { Err(Cause::new("cut off")) } else { Ok(before) }
        };
        assert_eq!(retry_while_unreachable(&cluster, Duration::ZERO, step).await.ok(), Some(1));

        let refused = || async { Err::<(), _>(Cause::new("refused")) };
        let cause = retry_while_unreachable(&cluster, Duration::ZERO, refused)
            .await
            .expect_err("it is refused");
        assert_eq!(cause.what(), "refused");
        // Two requests failed, one had a response.
        assert_eq!(requests.load(Ordering::SeqCst), 3);
    }
}
