//! An embedded cluster: store, API server, workloads and lifecycle controllers in this process.
//!
//! This file is about their order. Steps that can be refused come first and change nothing: the API
//! listener, then the lock of the data folder. Then follow keys, API server, CustomResourceDefinitions
//! and controllers; `/readyz` turns green last. Stopping has the opposite order.

use crate::catalog_listeners::CatalogListeners;
use crate::cluster_catalogs::{self, CatalogServer};
use crate::health::{Health, HealthState};
use crate::subsystems::Selected;
use crate::{
    catalogs, controller_pods, data, images, kubeconfig, layout, network, operator_hub, packages,
};
use mainstay_apiserver::{ApiServer, audit};
use mainstay_auth::Identity;
use mainstay_auth::pki::{Pki, PkiError};
use mainstay_cause::{Cause, FileLocation};
use mainstay_classic::{CatalogPods, Classic, FolderCatalog, Timeouts};
use mainstay_cli::args::CatalogModeArgument;
use mainstay_cli::config::{Data, ImageSource, OperatorNetwork, ServedFolder};
use mainstay_cli::defaults::DefaultCatalogs;
use mainstay_client::Cluster;
use mainstay_clock::Clock;
use mainstay_command::environment::runtime_folder;
use mainstay_command::exit::CommandFailure;
use mainstay_command::profile::Profile;
use mainstay_controller::RunningSubsystems;
use mainstay_extensions::Extensions;
use mainstay_files::PrivateFolder;
use mainstay_object::{NamespacedName, builtin};
use mainstay_store::{EngineError, Store};
use mainstay_workloads::{ClusterCredentials, Workloads};
use std::collections::BTreeSet;
use std::error::Error;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The configuration of an embedded cluster.
pub(crate) struct Settings {
    /// The data folder, or memory.
    pub(crate) data: Data,
    /// The address of the API listener.
    pub(crate) listen: SocketAddr,
    /// The kubeconfig's path; `None` puts it into the data folder, or a temporary folder.
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Catalogs to serve, besides those that the data folder remembers.
    pub(crate) catalogs: Vec<ServedFolder>,
    /// Images to import, besides those that the data folder has.
    pub(crate) images: Vec<ImageSource>,
    /// The address of the image registry; `None` takes the previous address, or a free port.
    pub(crate) registry: Option<SocketAddr>,
    /// Number of simulated nodes.
    pub(crate) nodes: u32,
    /// The profile, which sets the standard namespaces.
    pub(crate) profile: Profile,
    /// Catalogs that the cluster has by default.
    pub(crate) defaults: DefaultCatalogs,
    /// Where catalogs by image and by ConfigMap are served.
    pub(crate) catalog_mode: CatalogModeArgument,
    /// Whether to repair a damaged store.
    pub(crate) repair: bool,
    /// The largest size of an object in the store, in bytes.
    pub(crate) max_object_bytes: usize,
    /// The audit log's path, if requests are audited.
    pub(crate) audit_log: Option<PathBuf>,
    pub(crate) network: OperatorNetwork,
    /// Namespaces that keep their copied CSVs where copied CSVs are disabled.
    pub(crate) protected: BTreeSet<String>,
    /// The subsystems that run beside the API server and its workloads.
    pub(crate) subsystems: Selected,
}

/// A running cluster.
pub(crate) struct Embedded {
    cluster: Cluster,
    clock: Clock,
    address: SocketAddr,
    kubeconfig: PathBuf,
    profile: Profile,
    startup_time: Duration,
    catalogs: catalogs::CatalogFolders,
    catalog_listeners: CatalogListeners,
    cluster_catalogs: Option<CatalogServer>,
    runs_classic: bool,
    images: images::Images,
    store: Store,
    subsystems: RunningSubsystems,
    workloads: Workloads,
    stop: CancellationToken,
    api_task: JoinHandle<()>,
    /// The temporary folder of the kubeconfig; it is removed with this value.
    _temporary: Option<PrivateFolder>,
}

/// The listener of the API server before it serves.
struct ApiListener {
    listener: TcpListener,
    address: SocketAddr,
}

impl Embedded {
    /// Starts a cluster and returns when it is ready. `say` reports each component that is ready, in a
    /// line.
    pub(crate) async fn start(
        settings: Settings,
        say: &dyn Fn(&str),
    ) -> Result<Self, CommandFailure> {
        let clock = Clock::system();
        let listener = bind_api(settings.listen).await.map_err(CommandFailure::usage)?;
        let address = listener
            .local_addr()
            .map_err(|error| Cause::new("the port has no address").because(io(&error)))?;
        let store = data::open(&settings, clock, say).await.map_err(CommandFailure::usage)?;
        let data = settings.data.clone();
        let listener = ApiListener { listener, address };
        let unwritable = |error: &EngineError| match &data {
            Data::Folder(folder) => CommandFailure::usage(data::unwritable(folder, error)),
            Data::Memory => chain(error).into(),
        };
        tokio::select! {
            embedded = Self::start_with_store(settings, store.clone(), listener, clock, say) => {
                // If the store refuses writes, that is the cause of any failure.
                embedded.map_err(|failure| match store.refusal() {
                    Some(error) => unwritable(&error),
                    None => failure,
                })
            }
            // Much of the startup waits for writes of controllers, which a refusing store never
            // accepts.
            error = store.refuses() => Err(unwritable(&error)),
        }
    }

    /// Starts a cluster on an open store.
    async fn start_with_store(
        settings: Settings,
        store: Store,
        listener: ApiListener,
        clock: Clock,
        say: &dyn Fn(&str),
    ) -> Result<Self, CommandFailure> {
        let ApiListener { listener, address } = listener;
        let surroundings =
            network::surroundings(&settings.network).map_err(CommandFailure::usage)?;
        let audit = settings.audit_log.as_deref().map(audit_log).transpose();
        let audit = audit.map_err(CommandFailure::usage)?;
        let catalog_memory =
            catalogs::CatalogMemory::read(&settings).map_err(CommandFailure::usage)?;
        let pki =
            load_pki(&settings.data, clock, settings.listen).map_err(CommandFailure::usage)?;
        let stop = CancellationToken::new();
        let images = images::open(&settings.data, settings.registry).await;
        let images = images.map_err(CommandFailure::usage)?;
        let (kubeconfig, temporary) =
            kubeconfig_location(&settings).map_err(CommandFailure::usage)?;
        let images = images.serve(settings.images.clone(), &kubeconfig, clock, &stop, say).await;
        let images = images.map_err(CommandFailure::usage)?;
        let authenticator = pki.authenticator(clock).map_err(|error| {
            Cause::new("the key for service-account tokens is unusable").because(chain(&error))
        })?;
        let authenticator = Arc::new(authenticator);
        let server = ApiServer::start(mainstay_apiserver::ApiServerConfig {
            store: store.clone(),
            clock,
            authenticator: Arc::clone(&authenticator),
            version: mainstay_apiserver::VersionInfo::default(),
            stop: stop.clone(),
        })
        .await
        .map_err(|error| Cause::new("the API server cannot start").because(chain(&error)))?;
        if let Some(audit) = audit {
            server.set_audit_log(audit);
        }
        // On a bare API server another program may serve PackageManifests.
        let runs_classic = settings.subsystems.contains(&mainstay_classic::SUBSYSTEM);
        let packages_api =
            runs_classic.then(|| packages::serve_in_process(&server, settings.profile, clock));
        let front_proxy = pki.front_proxy(&clock).map_err(|error| {
            Cause::new("the certificate for aggregated API servers cannot be created")
                .because(chain(&error))
        })?;
        server.set_front_proxy(front_proxy);
        server.publish_client_ca(pki.authority_pem()).await.map_err(|status| {
            Cause::new("the client CA cannot be published").because(Cause::new(status.to_string()))
        })?;
        let crd_gate = server.readiness().gate("definitions");
        let controllers_gate = server.readiness().gate("controllers");
        let tls = pki
            .server_config()
            .map_err(|error| Cause::new("TLS cannot be set up").because(chain(&error)))?;
        let api_task = {
            let (server, stop) = (Arc::clone(&server), stop.clone());
            let tls = Arc::clone(&tls);
            tokio::spawn(async move { server.serve(listener, tls, stop).await })
        };
        write_kubeconfig(&kubeconfig, &pki, address).map_err(CommandFailure::usage)?;
        say(&format!("api         https://{address}"));
        say(&format!("kubeconfig  {}", kubeconfig.display()));

        let service = server.service(Identity::admin());
        let cluster = Cluster::new(kube::Client::new(service, "default"))
            .with_user_agent(concat!("mainstay/", env!("CARGO_PKG_VERSION")));
        let credentials = ClusterCredentials::new(&pki, authenticator, clock).map_err(|error| {
            Cause::new("the CA of the cluster cannot sign").because(chain(&error))
        })?;
        // Before any client watches all kinds: each change of each definition would be an event for it.
        settings.subsystems.install(&cluster).await?;
        if runs_classic {
            operator_hub::ensure_crd(&cluster, &settings.defaults).await?;
        }
        crd_gate.open();
        let workloads = Workloads::start(
            cluster.clone(),
            mainstay_workloads::Options {
                nodes: settings.nodes as usize,
                root_ca: Some(pki.authority_pem().to_owned()),
                credentials: Some(Arc::new(credentials)),
                ..mainstay_workloads::Options::new(clock)
            },
        );
        let namespace = settings.profile.catalog_namespace();
        let runs_extensions = settings.subsystems.contains(&mainstay_extensions::SUBSYSTEM);
        if runs_classic {
            layout::apply_standard_objects(&cluster, settings.profile).await?;
        } else if runs_extensions {
            // The namespace of the Lease.
            layout::apply_namespace(&cluster, settings.profile.manager_namespace()).await?;
        }
        if settings.subsystems.is_empty() {
            layout::delete_embedded_leases(&cluster).await?;
        } else {
            layout::apply_embedded_lease(&cluster, settings.profile).await?;
            say("kinds       Established");
        }
        let catalogs = if runs_classic {
            layout::register_packages(&cluster, settings.profile).await?;
            catalog_memory.catalogs_to_serve(&cluster, namespace).await?
        } else {
            layout::unregister_packages(&cluster, settings.profile).await?;
            // The list of earlier catalogs follows the CatalogSources.
            catalog_memory.configured().clone()
        };
        let catalog_listeners =
            CatalogListeners::open(&cluster, namespace, &catalogs, &stop).await?;
        let folder_catalogs: Vec<FolderCatalog> = catalogs
            .iter()
            .map(|(name, folder)| {
                let key = NamespacedName::new(namespace, name.as_str());
                let served = catalog_listeners.served_at(&key);
                FolderCatalog {
                    namespace: namespace.to_owned(),
                    name: name.clone(),
                    folder: folder.clone(),
                    address: served.as_ref().map(|served| Arc::clone(&served.address)),
                    served: served.map(|served| served.content),
                }
            })
            .collect();
        let copies = match &settings.data {
            Data::Folder(folder) => Some(folder.join("catalogs")),
            Data::Memory => None,
        };
        // One set for all subsystems: it empties its work folder.
        let sources = (!settings.subsystems.is_empty()).then(|| images.sources(clock));
        let sources = sources.transpose().map_err(CommandFailure::usage)?;
        let mut subsystems = RunningSubsystems::default();
        let mut catalog_contents = None;
        if runs_classic {
            let options = mainstay_classic::Options {
                clock,
                global_namespace: namespace.to_owned(),
                catalogs: folder_catalogs.clone(),
                images: sources.clone(),
                serve: Some(Arc::new(catalog_listeners.clone())),
                surroundings,
                timeouts: Timeouts::default(),
                protected: settings.protected,
                defaults: operator_hub::default_sources(
                    &cluster,
                    &settings.defaults,
                    settings.profile,
                    say,
                )
                .await?,
                cache: copies,
            };
            let catalog_pods =
                CatalogPods { simulated: true, ..catalog_pods(settings.catalog_mode) };
            let classic = Classic::start_with(&cluster, options, catalog_pods);
            catalog_contents = Some(classic.catalogs());
            subsystems.add(classic);
            for name in catalogs.keys() {
                layout::apply_catalog_source(&cluster, namespace, name).await?;
            }
        } else {
            cluster_catalogs::follow_folders(&folder_catalogs, copies, clock, &stop);
        }
        let mut cluster_catalogs = None;
        if let Some(sources) = sources.filter(|_| runs_extensions) {
            let catalogd = settings.profile.catalogd_namespace();
            let releases = settings.profile.operator_controller_namespace();
            layout::apply_namespace(&cluster, catalogd).await?;
            layout::apply_namespace(&cluster, releases).await?;
            let authority = cluster_catalogs::ca_config_map(catalogd, pki.authority_pem());
            layout::apply(&cluster, &builtin::CONFIG_MAP, &authority).await?;
            let addresses = cluster_catalogs::loopback_addresses(&cluster).await;
            let server = CatalogServer::open(&addresses, &tls, &stop).await?;
            let content = match &settings.data {
                Data::Folder(folder) => folder.join("clustercatalogs"),
                Data::Memory => sources.work.join("clustercatalogs"),
            };
            for name in catalogs.keys() {
                layout::create_cluster_catalog(&cluster, name).await?;
            }
            let options = mainstay_extensions::Options {
                system_namespace: catalogd.to_owned(),
                release_namespace: releases.to_owned(),
                external_address: server.address.to_string(),
                folders: cluster_catalogs::contents_of(&folder_catalogs),
                served: server.served(),
                features: settings.subsystems.features(),
                ..mainstay_extensions::Options::new(clock, sources, content)
            };
            subsystems.add(Extensions::start(&cluster, options));
            cluster_catalogs = Some(server);
        }
        tokio::join!(workloads.synced(), subsystems.synced());
        if let (Some(packages_api), Some(catalog_contents)) = (packages_api, catalog_contents) {
            packages_api.attach(catalog_contents);
        }
        let monitors = subsystems.monitors();
        let health = Health::new();
        health.set(HealthState::Working(monitors.clone()));
        server.add_metrics(move |page| monitors.write_metrics(page));
        controllers_gate.open();
        let startup_time = clock.elapsed();
        // Nothing waits for these Deployments: they only represent controllers that run already.
        let manager = settings.profile.manager_namespace();
        if runs_classic {
            controller_pods::apply(&server, &cluster, manager, clock, &health).await?;
        } else {
            controller_pods::delete(&cluster, manager).await?;
        }
        // The data folder may have more nodes, from an earlier start with a higher number.
        let nodes = store.list("nodes", None).iter().count().max(settings.nodes as usize);
        let plural = if nodes == 1 { "" } else { "s" };
        say(&format!("workloads   {nodes} simulated node{plural}"));
        if !address.ip().is_loopback() {
            say(&format!(
                "warning     the API listens on {} and not on loopback only",
                address.ip()
            ));
        }
        Ok(Self {
            cluster,
            clock,
            address,
            kubeconfig,
            profile: settings.profile,
            startup_time,
            catalogs,
            catalog_listeners,
            cluster_catalogs,
            runs_classic,
            images,
            store,
            subsystems,
            workloads,
            stop,
            api_task,
            _temporary: temporary,
        })
    }

    /// Stops every component, controllers first, so that none writes into a closing store.
    pub(crate) async fn stop(self) -> Result<(), Cause> {
        self.subsystems.shutdown().await;
        self.workloads.shutdown().await;
        self.stop.cancel();
        // A server task that panicked has ended as well; the panic is in the log.
        let _ = self.api_task.await;
        self.catalog_listeners.wait_until_closed().await;
        if let Some(cluster_catalogs) = self.cluster_catalogs {
            cluster_catalogs.wait_until_closed().await;
        }
        self.images.wait_until_closed().await;
        self.store
            .close()
            .await
            .map_err(|error| Cause::new("the store could not be closed").because(chain(&error)))
    }

    /// The client of the API server, without a socket.
    pub(crate) const fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// The clock of the cluster.
    pub(crate) const fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The URL of the API server.
    pub(crate) fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// The path of the kubeconfig.
    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The time from the start until `/readyz` was green.
    pub(crate) const fn startup_time(&self) -> Duration {
        self.startup_time
    }

    /// Names and folders of the served catalogs.
    pub(crate) const fn catalogs(&self) -> &catalogs::CatalogFolders {
        &self.catalogs
    }

    /// The address of the registry server of a catalog in [`Embedded::catalog_namespace`].
    pub(crate) fn catalog_address(&self, name: &str) -> Option<SocketAddr> {
        let key = NamespacedName::new(self.catalog_namespace(), name);
        self.catalog_listeners.address(&key).map(|(address, _)| address)
    }

    /// Whether the catalogs are CatalogSources of OLM classic.
    pub(crate) const fn runs_classic(&self) -> bool {
        self.runs_classic
    }

    /// The address of the HTTP API of ClusterCatalogs, if they are served.
    pub(crate) fn cluster_catalogs_address(&self) -> Option<SocketAddr> {
        self.cluster_catalogs.as_ref().map(|server| server.address)
    }

    /// The namespace of the catalogs that every namespace sees.
    pub(crate) const fn catalog_namespace(&self) -> &'static str {
        self.profile.catalog_namespace()
    }

    /// The namespace of operators that watch all namespaces.
    pub(crate) const fn operator_namespace(&self) -> &'static str {
        self.profile.operator_namespace()
    }
}

/// The options of catalog pods in a mode.
pub(crate) fn catalog_pods(mode: CatalogModeArgument) -> CatalogPods {
    let mode = match mode {
        CatalogModeArgument::InProcess => mainstay_classic::CatalogMode::InProcess,
        CatalogModeArgument::Pods => mainstay_classic::CatalogMode::Pods,
        CatalogModeArgument::Auto => mainstay_classic::CatalogMode::Auto,
    };
    CatalogPods { mode, ..CatalogPods::default() }
}

async fn bind_api(address: SocketAddr) -> Result<TcpListener, Cause> {
    TcpListener::bind(address).await.map_err(|error| {
        Cause::new(format!("the API cannot be served at {address}"))
            .because(io(&error))
            .remedy("choose another address with --listen ADDR:PORT; port 0 selects a free port")
    })
}

/// Names of this machine for the serving certificate: its host name, and its source address towards
/// other machines, found without sending anything.
fn host_names() -> Vec<String> {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let address = std::net::UdpSocket::bind("0.0.0.0:0")
        // A documentation address: connecting a UDP socket only chooses a route.
        .and_then(|socket| socket.connect("192.0.2.1:9").and_then(|()| socket.local_addr()));
    let host = Some(host.trim().to_owned()).filter(|host| !host.is_empty());
    host.into_iter().chain(address.ok().map(|address| address.ip().to_string())).collect()
}

fn load_pki(data: &Data, clock: Clock, listen: SocketAddr) -> Result<Pki, Cause> {
    let names =
        if listen.ip().is_unspecified() { host_names() } else { vec![listen.ip().to_string()] };
    match data {
        Data::Memory => Pki::ephemeral(&clock, &names),
        Data::Folder(folder) => Pki::load_or_create(&folder.join("pki"), &clock, &names),
    }
    .map_err(|error: PkiError| {
        Cause::new("the cluster's keys cannot be used").because(chain(&error))
    })
}

/// The kubeconfig's path, and its temporary folder if it needs one.
fn kubeconfig_location(settings: &Settings) -> Result<(PathBuf, Option<PrivateFolder>), Cause> {
    Ok(match (&settings.kubeconfig, &settings.data) {
        (Some(file), _) => (file.clone(), None),
        (None, Data::Folder(folder)) => (folder.join("kubeconfig"), None),
        (None, Data::Memory) => {
            let parent = runtime_folder();
            let folder = PrivateFolder::create_in(&parent, "mainstay-").map_err(|error| {
                Cause::new("the folder for the kubeconfig cannot be created")
                    .at(FileLocation::file(parent))
                    .because(io(&error))
                    .remedy("name a file with --kubeconfig PATH")
            })?;
            (folder.path().join("kubeconfig"), Some(folder))
        }
    })
}

fn write_kubeconfig(file: &Path, pki: &Pki, address: SocketAddr) -> Result<(), Cause> {
    // An unspecified address cannot be connected to.
    let server = if address.ip().is_unspecified() {
        format!("https://127.0.0.1:{}", address.port())
    } else {
        format!("https://{address}")
    };
    kubeconfig::write(file, &pki.kubeconfig(&server, "mainstay"))
}

/// Opens the audit log.
fn audit_log(file: &Path) -> Result<audit::AuditLog, Cause> {
    audit::AuditLog::open(file).map_err(|error| {
        Cause::new("the audit log cannot be written")
            .at(FileLocation::file(file))
            .because(io(&error))
            .remedy("name a file in an existing folder with --audit-log FILE")
    })
}

/// An I/O error as a cause.
pub(crate) fn io(error: &std::io::Error) -> Cause {
    Cause::new(mainstay_gocompat::io_error_text(error))
}

/// An error and its sources, as one tree.
pub(crate) fn chain(error: &dyn Error) -> Cause {
    let text = error.to_string();
    // Some errors repeat the text of what they wrap.
    let mut below = error.source();
    while let Some(source) = below.filter(|source| text.contains(&source.to_string())) {
        below = source.source();
    }
    let cause = Cause::new(text);
    match below {
        Some(source) => cause.because(chain(source)),
        None => cause,
    }
}
