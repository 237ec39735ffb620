//! `mainstay demo`: an embedded cluster, and a story that runs on it.
//!
//! The story has an administrator's steps: a catalog, a Subscription with Manual approval, an
//! InstallPlan that waits, the operator running, two upgrades, and a refused Subscription that explains
//! itself. All output is read back from the API; the catalog only serves to choose a package.

mod scenario;
mod story;

use crate::embedded::{Embedded, Settings};
use crate::sample;
use crate::stop::StopSignals;
use crate::subsystems::Selected;
use crate::supervise::Startup;
use mainstay_cause::{Cause, FileLocation};
use mainstay_cli::args::CatalogModeArgument;
use mainstay_cli::config::{Data, Demo, OperatorNetwork, ServedFolder};
use mainstay_cli::defaults::DefaultCatalogs;
use mainstay_command::environment::runtime_folder;
use mainstay_command::exit::CommandFailure;
use mainstay_command::profile::Profile;
use mainstay_command::report::ProgressReport;
use mainstay_files::PrivateFolder;
use std::collections::BTreeSet;

/// Name of the CatalogSource that the story uses.
const SOURCE: &str = "demo";

/// Runs the demo to its end.
pub(crate) async fn run(
    demo: Demo,
    report: ProgressReport,
    startup: Startup,
) -> Result<(), CommandFailure> {
    let mut signals = StopSignals::listen()?;
    let work = work_folder()?;
    let catalog = if let Some(folder) = demo.catalog {
        folder
    } else {
        let folder = work.path().join("catalog");
        sample::write(&folder)?;
        folder
    };
    let scenario = {
        let (catalog, package) = (catalog.clone(), demo.package.clone());
        let chosen =
            tokio::task::spawn_blocking(move || scenario::choose(&catalog, package.as_deref()));
        let chosen = chosen.await;
        chosen
            .map_err(|error| Cause::new(format!("reading the catalog ended early: {error}")))?
            .map_err(CommandFailure::usage)?
    };
    let settings = Settings {
        data: Data::Memory,
        listen: demo.listen,
        kubeconfig: Some(demo.kubeconfig.unwrap_or_else(|| work.path().join("kubeconfig"))),
        catalogs: vec![ServedFolder { name: SOURCE.to_owned(), folder: catalog }],
        images: Vec::new(),
        registry: None,
        nodes: 1,
        profile: Profile::Standard,
        defaults: DefaultCatalogs::None,
        catalog_mode: CatalogModeArgument::InProcess,
        repair: false,
        max_object_bytes: mainstay_object::size::DEFAULT_OBJECT_BYTES,
        audit_log: None,
        network: OperatorNetwork::default(),
        protected: BTreeSet::new(),
        subsystems: Selected::all(),
    };
    let embedded = tokio::select! {
        embedded = Embedded::start(settings, &|_| {}) => embedded?,
        () = signals.wait() => return Err(interrupted().into()),
    };
    startup.done();
    let result = tokio::select! {
        result = story::run(&embedded, &scenario, &report, !demo.exit) => result,
        () = signals.wait() => Err(interrupted()),
    };
    if result.is_ok() && !demo.exit {
        report.say("\nThe cluster keeps running; Ctrl-C ends it.");
        signals.wait().await;
    }
    let stopped = embedded.stop().await;
    Ok(result.and(stopped)?)
}

fn interrupted() -> Cause {
    Cause::new("interrupted before the end of the demo")
}

/// The temporary folder of the demo, which will hold the administrator's key.
fn work_folder() -> Result<PrivateFolder, Cause> {
    let parent = runtime_folder();
    PrivateFolder::create_in(&parent, "mainstay-demo-").map_err(|error| {
        Cause::new("the folder of the demo cannot be created")
            .at(FileLocation::file(parent))
            .because(Cause::new(mainstay_gocompat::io_error_text(&error)))
            .remedy("name another folder for temporary files with TMPDIR")
    })
}
