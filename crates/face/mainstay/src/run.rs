//! `mainstay run`: operators on a cluster that is there.
//!
//! One process of several works, the one that holds the Lease `mainstay` in the namespace of the
//! lifecycle manager; the others wait. The worker first sees that definitions and standard
//! namespaces are there, then runs the controllers until it is told to stop or loses the Lease.

mod access;
mod packages;
mod probes;
mod secured;

use self::access::Access;
use crate::embedded::{chain, io, pods};
use crate::health::{Health, HealthState};
use crate::live::{self, ClusterSelector};
use crate::stop::Stop;
use crate::subsystems::Selected;
use crate::supervise::Started;
use crate::{hub, images, layout, network};
use mainstay_cause::{Cause, Place};
use mainstay_classic::{
    CatalogPods, Classic, DefaultSources, FolderCatalog, Surroundings, Timeouts,
};
use mainstay_cli::config::{PodImages, Run};
use mainstay_cli::exit::Failure;
use mainstay_cli::report::{Report, milliseconds};
use mainstay_client::{Cluster, Election, ListParams, Term};
use mainstay_clock::Clock;
use mainstay_controller::RunningSubsystems;
use mainstay_images::Images;
use mainstay_object::{NamespacedName, known};
use std::fs::{File, TryLockError};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// As good as without end.
const FOREVER: Duration = Duration::from_hours(24 * 36_500);
/// How long connecting, and the first answer, may take.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two tries to begin the work while the API is away.
const PAUSE: Duration = Duration::from_secs(2);

/// Works on the cluster that the arguments name until a signal.
pub(crate) async fn run(run: Run, report: Report, started: Started) -> Result<(), Failure> {
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
    let secured = run.secured.as_ref().map(secured::settings).transpose();
    let secured = secured.map_err(Failure::usage)?;
    let manager = run.profile.manager_namespace();
    let packages = packages::Port::open(&run.packages, manager, clock).await?;
    let selected = Selected::parse(&run.controllers).map_err(Failure::usage)?;
    let _lock = lock(&run.data).map_err(Failure::usage)?;
    let images = images::pulled(&run.data, clock).map_err(Failure::usage)?;
    let surroundings = network::surroundings(&run.network).map_err(Failure::usage)?;
    let selector = ClusterSelector {
        cluster: &run.cluster,
        timeout: PATIENCE,
        name: concat!("mainstay/", env!("CARGO_PKG_VERSION")),
        remedy: "name a kubeconfig with --kubeconfig FILE, or bring up a cluster with `mainstay up`",
    };
    let (cluster, url) = tokio::select! {
        connected = live::connect(&selector) => connected?,
        () = signals.asked() => return Ok(()),
    };
    started.done();
    report.say(format!("cluster     {url}"));
    let scheme = if secured.is_some() { "https" } else { "http" };
    report.say(format!("health      {scheme}://{address}/healthz /readyz /metrics"));
    for note in &run.notes {
        report.say(format!("note        {note}"));
    }

    let stop = CancellationToken::new();
    let health = Health::new();
    let guarded = secured.map(|settings| (settings, Arc::new(Access::new(cluster.clone(), clock))));
    let port = tokio::spawn(probes::serve(listener, health.clone(), guarded, stop.clone()));
    let (packages, serving) = packages.map(|port| port.serve(stop.clone())).transpose()?.unzip();
    if packages.is_none() {
        report.say("packages    are not served: say where the cluster reaches this process with --packages-address IP");
    }
    let leading = async {
        let seen = stop.run_until_cancelled(async {
            // First: such a cluster has Deployments with the names of those of OLM, too.
            not_embedded(&cluster).await?;
            unrivalled(&cluster).await?;
            // The Lease has to be somewhere.
            layout::namespace(&cluster, manager).await
        });
        match seen.await {
            Some(seen) => seen?,
            None => return Ok(()),
        }
        let key = NamespacedName::new(manager, layout::LEASE);
        let election = Election::new(cluster.clone(), key, identity(&run.data), clock);
        let waits = |holder: &str| {
            report.say(format!("waiting     {holder} works; this one takes over when it ends"));
            health.set(HealthState::Waiting);
        };
        let work = |term: Term| {
            let (run, cluster, images) = (&run, term.over(&cluster), images.clone());
            let selected = &selected;
            let surroundings = surroundings.clone();
            let (health, report, packages) = (&health, &report, &packages);
            async move {
                health.set(HealthState::Starting);
                let prepare = || prepare(run, selected, &cluster, packages.is_some(), report);
                let defaults = tokio::select! {
                    defaults = patiently(&cluster, PAUSE, prepare) => defaults?,
                    () = term.cancelled() => return Ok(()),
                };
                let options = options(run, defaults, images, surroundings, clock);
                let simulated = simulated(&cluster).await;
                let pods = CatalogPods { simulated, ..pods_with(run) };
                let mut subsystems = RunningSubsystems::default();
                let mut offered = None;
                if selected.contains(&mainstay_classic::SUBSYSTEM) {
                    let classic = Classic::start_with(&cluster, options, pods);
                    offered = Some(classic.catalogs());
                    subsystems.add(classic);
                }
                let ready = async {
                    patiently(&cluster, PAUSE, || folders(run, &cluster)).await?;
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
                        if let (Some(packages), Some(offered)) = (packages, offered) {
                            let say = |line: &str| report.say(line);
                            packages
                                .work(&cluster, offered, &run.namespace, term.token(), say)
                                .await;
                        }
                    };
                    // Ending in order takes a while, in which another one may begin to work.
                    let told = async {
                        term.cancelled().await;
                        health.set(HealthState::Starting);
                    };
                    tokio::join!(serve, told);
                }
                subsystems.shutdown().await;
                ready.map(drop)
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
    if let Some(serving) = serving {
        let _ = serving.await;
    }
    result?;
    report.say("stopped");
    Ok(())
}

/// Does a step of the start, again and again while the API is away: that is no fault of the step.
async fn patiently<T, Fut: Future<Output = Result<T, Cause>>>(
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
                tracing::warn!(%cause, "the API is away, and the work cannot begin yet");
            }
            _ => return Err(cause),
        }
        tokio::time::sleep(pause).await;
    }
}

/// Sees that the cluster has what the controllers need; gives the default catalogs to keep.
async fn prepare(
    run: &Run,
    selected: &Selected,
    cluster: &Cluster,
    serves_packages: bool,
    report: &Report,
) -> Result<Option<DefaultSources>, Cause> {
    if !serves_packages {
        match packages::forget(cluster, run.profile.manager_namespace()).await {
            Ok(true) => {
                report.say("packages    are not registered any more: who served them has ended");
            }
            Ok(false) => {}
            Err(error) if error.is_forbidden() => {
                tracing::error!(%error, "it cannot be seen whether packages are registered with nobody behind them");
            }
            Err(error) => {
                return Err(Cause::new(
                    "the registration of packages that are not served cannot be taken away",
                )
                .because(chain(&error)));
            }
        }
    }
    selected.install(cluster).await?;
    hub::definition(cluster, &run.defaults).await?;
    layout::standard(cluster, run.profile).await?;
    layout::namespace(cluster, &run.namespace).await?;
    hub::prepare(cluster, &run.defaults, run.profile, |line| report.say(line)).await
}

/// Makes sure that each catalog of a folder has its `CatalogSource`.
async fn folders(run: &Run, cluster: &Cluster) -> Result<(), Cause> {
    for catalog in &run.catalogs {
        layout::catalog_source(cluster, &run.namespace, &catalog.name).await?;
    }
    Ok(())
}

/// What the controllers are to know.
fn options(
    run: &Run,
    defaults: Option<DefaultSources>,
    images: Images,
    surroundings: Surroundings,
    clock: Clock,
) -> mainstay_classic::Options {
    let catalogs = run.catalogs.iter().map(|catalog| FolderCatalog {
        namespace: run.namespace.clone(),
        name: catalog.name.clone(),
        folder: catalog.folder.clone(),
        served: None,
    });
    mainstay_classic::Options {
        clock,
        global_namespace: run.namespace.clone(),
        catalogs: catalogs.collect(),
        cache: Some(run.data.join("catalogs")),
        images: Some(images),
        serve: None,
        surroundings,
        timeouts: Timeouts {
            plan: run.plan_timeout,
            unpack: if run.unpack_timeout.is_zero() { FOREVER } else { run.unpack_timeout },
            ..Timeouts::default()
        },
        protected: run.protected.clone(),
        defaults,
    }
}

/// How catalogs run as pods, and with which images.
fn pods_with(run: &Run) -> CatalogPods {
    let mut pods = pods(run.catalog_mode);
    let PodImages { config_map, opm, util, any_user } = run.images.clone();
    pods.config_map_image = config_map.unwrap_or(pods.config_map_image);
    pods.opm_image = opm.unwrap_or(pods.opm_image);
    pods.util_image = util.unwrap_or(pods.util_image);
    pods.any_user = any_user;
    pods
}

/// Whether the nodes of the cluster are those of `mainstay up`, on which no pod runs. Of nodes that may
/// not be seen, this is not assumed.
async fn simulated(cluster: &Cluster) -> bool {
    const RUNTIME: [&str; 3] = ["status", "nodeInfo", "containerRuntimeVersion"];
    let first = ListParams { limit: 1, ..ListParams::default() };
    let listed = async { cluster.list(&known::NODE, None, &first).await };
    let Ok(Ok(nodes)) = tokio::time::timeout(PATIENCE, listed).await else { return false };
    let runtime = nodes.items.first().and_then(|node| node.str(&RUNTIME));
    runtime.is_some_and(|runtime| runtime.starts_with("simulated://"))
}

/// Refuses to work beside Operator Lifecycle Manager: each would undo what the other does.
async fn unrivalled(cluster: &Cluster) -> Result<(), Cause> {
    let params = ListParams::labels("app in (olm-operator, catalog-operator)");
    let unseen = |why: Cause, remedy: &str| {
        Cause::new("it cannot be seen whether Operator Lifecycle Manager runs on the cluster")
            .because(why)
            .remedy(remedy)
    };
    let elsewhere = "see whether the cluster runs, or name another one with --kubeconfig FILE or --context NAME";
    let listed = async { cluster.list(&known::DEPLOYMENT, None, &params).await };
    let found = match tokio::time::timeout(PATIENCE, listed).await {
        Ok(Ok(found)) => found,
        Ok(Err(error)) => {
            let remedy = match error.status().map(|status| status.code) {
                Some(401) => {
                    "check the credentials of the kubeconfig, or name another one with --kubeconfig FILE or --context NAME"
                }
                Some(403) => "work as somebody who may do everything on the cluster",
                _ => elsewhere,
            };
            return Err(unseen(chain(&error), remedy));
        }
        Err(_) => {
            let why = format!("it did not answer within {} s", PATIENCE.as_secs());
            return Err(unseen(Cause::new(why), elsewhere));
        }
    };
    let rivals =
        found.items.iter().filter(|deployment| deployment.i64(&["spec", "replicas"]) != Some(0));
    let causes: Vec<Cause> = rivals
        .map(|deployment| {
            let (namespace, name) = (deployment.namespace(), deployment.name());
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

/// Refuses to work where the controllers run in the process of the API.
async fn not_embedded(cluster: &Cluster) -> Result<(), Cause> {
    // Who may not list Leases of all namespaces finds out from the one that is to be held.
    let Ok(leases) = layout::embedded_leases(cluster).await else { return Ok(()) };
    let Some(lease) = leases.first() else { return Ok(()) };
    let (namespace, name) = (lease.namespace(), lease.name());
    Err(Cause::new("the controllers of this cluster run in the process of its API already")
        .because(Cause::new(format!("Lease {namespace}/{name} is held by `mainstay up`")))
        .remedy("use the cluster as it is, or start it with `mainstay up --bare`"))
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
    if let Some(warning) = mainstay_files::claim_data(folder).map_err(|error| refused(&error))? {
        tracing::warn!("{warning}");
    }
    let lock = mainstay_files::open_lock(&file).map_err(|error| refused(&error))?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use http::{Request, Response};
    use kube::client::Body;
    use std::sync::atomic::{AtomicU32, Ordering};

    /// An API that answers from the third request on.
    fn away_at_first(asked: &Arc<AtomicU32>) -> Cluster {
        let asked = Arc::clone(asked);
        let service = tower::service_fn(move |_: Request<Body>| {
            let answers = asked.fetch_add(1, Ordering::SeqCst) >= 2;
            async move {
                let answer = Response::new(Body::from(b"{}".to_vec()));
                answers.then_some(answer).ok_or_else(|| std::io::Error::other("nobody listens"))
            }
        });
        Cluster::new(kube::Client::new(service, "default"))
    }

    #[tokio::test]
    async fn a_start_is_tried_again_while_the_api_is_away_and_fails_where_it_answers() {
        let asked = Arc::default();
        let cluster = away_at_first(&asked);
        let tries = AtomicU32::new(0);
        let step = || async {
            let before = tries.fetch_add(1, Ordering::SeqCst);
            if before == 0 { Err(Cause::new("cut off")) } else { Ok(before) }
        };
        assert_eq!(patiently(&cluster, Duration::ZERO, step).await.ok(), Some(1));

        let refused = || async { Err::<(), _>(Cause::new("refused")) };
        let cause = patiently(&cluster, Duration::ZERO, refused).await.expect_err("it is refused");
        assert_eq!(cause.what(), "refused");
        // Twice it was away, once it answered.
        assert_eq!(asked.load(Ordering::SeqCst), 3);
    }
}
