//! `mainstay demo`: a whole cluster in one process, and a story told on it.
//!
//! The story is that of an administrator: a catalog, a Subscription with Manual approval, a plan
//! that waits, the operator running, two upgrades, and a refusal that explains itself. Everything
//! printed is read back from the API; what the catalog promises is only used to choose a package.

mod plot;
mod story;

use crate::embedded::{Embedded, Settings};
use crate::sample;
use crate::stop::Stop;
use mainstay_cause::{Cause, Place};
use mainstay_cli::args::{CatalogMode, Profile};
use mainstay_cli::config::{CatalogFolder, Data, Demo, Network, runtime_folder};
use mainstay_cli::defaults::Defaults;
use mainstay_cli::exit::Failure;
use mainstay_cli::report::Report;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Name of the CatalogSource that the story uses.
const SOURCE: &str = "demo";

/// Runs the demo to its end.
pub(crate) async fn run(demo: Demo, report: Report) -> Result<(), Failure> {
    let mut stop = Stop::listen()?;
    let work = WorkFolder::make()?;
    let catalog = if let Some(folder) = demo.catalog {
        folder
    } else {
        let folder = work.0.join("catalog");
        sample::write(&folder)?;
        folder
    };
    let plot = {
        let (catalog, package) = (catalog.clone(), demo.package.clone());
        let chosen =
            tokio::task::spawn_blocking(move || plot::choose(&catalog, package.as_deref()));
        let chosen = chosen.await;
        chosen
            .map_err(|error| Cause::new(format!("reading the catalog ended early: {error}")))?
            .map_err(Failure::usage)?
    };
    let settings = Settings {
        data: Data::Memory,
        listen: demo.listen,
        kubeconfig: Some(demo.kubeconfig.unwrap_or_else(|| work.0.join("kubeconfig"))),
        catalogs: vec![CatalogFolder { name: SOURCE.to_owned(), folder: catalog }],
        images: Vec::new(),
        registry: None,
        nodes: 1,
        profile: Profile::Standard,
        defaults: Defaults::None,
        catalog_mode: CatalogMode::InProcess,
        repair: false,
        audit_log: None,
        network: Network::default(),
        protected: BTreeSet::new(),
        bare: false,
    };
    let embedded = Embedded::start(settings, &|_| {}).await?;
    let told = tokio::select! {
        told = story::tell(&embedded, &plot, &report, !demo.exit) => told,
        () = stop.asked() => Err(Cause::new("interrupted before the story was told")),
    };
    if told.is_ok() && !demo.exit {
        report.say("\nThe cluster keeps running; Ctrl-C ends it.");
        stop.asked().await;
    }
    let stopped = embedded.stop().await;
    Ok(told.and(stopped)?)
}

/// A folder for as long as the demo runs.
struct WorkFolder(PathBuf);

impl WorkFolder {
    fn make() -> Result<Self, Cause> {
        let folder = runtime_folder().join(format!("mainstay-{}", std::process::id()));
        private_folder(&folder).map_err(|error| {
            Cause::new("the demo's folder cannot be made")
                .at(Place::file(&folder))
                .because(Cause::new(mainstay_cli::config::reason(&error)))
        })?;
        Ok(Self(folder))
    }
}

/// Makes a folder that only its owner can read: it will hold the administrator's key.
fn private_folder(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    // Left behind by a process of the same id that was killed; never somebody else's, since the
    // folder above is either private or has the sticky bit.
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    std::fs::DirBuilder::new().mode(0o700).create(folder)
}

impl Drop for WorkFolder {
    fn drop(&mut self) {
        // Nothing can be done about a failure, and the operating system clears the place in time.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
