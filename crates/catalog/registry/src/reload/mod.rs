//! Catalog reload: reads a folder again when it has changed and become quiet.
//!
//! ```text
//! folder ── change ─► wait until quiet ─► read (own thread) ─┬─ valid ───► served from now on
//!                                                            └─ invalid ─► the old content stays, with the problem
//! ```
//!
//! Readers never wait for a reload: the new index is built beside the old one and replaces it.

mod watch;

use crate::{RegistryIndex, ServedCatalog};
use mainstay_catalog::{Catalog, LoadError, LoadOptions};
use mainstay_clock::Clock;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};
use watch::FolderWatch;

/// How long a folder must be quiet before it is read, because writers need several steps.
const QUIET: Duration = Duration::from_millis(50);
/// After this time a folder is read although it still changes.
const MAX_WAIT: Duration = Duration::from_millis(500);

/// Calls `load` at once, and again whenever the folder has changed, until the future is dropped.
/// The folder need not exist yet. If the system cannot watch the whole folder, `report_gap` gets
/// the reason, and changes are noticed some seconds later.
pub async fn follow<F: Future<Output = ()>>(
    folder: &Path,
    clock: Clock,
    report_gap: impl FnMut(&str),
    load: impl FnMut() -> F,
) {
    // The watch starts before the first read, so that no change is missed in between.
    let start = folder.to_owned();
    let Some(watch) = run_blocking(move || FolderWatch::start(&start)).await else { return };
    reload_on_change(watch, clock, report_gap, load).await;
}

async fn reload_on_change<F: Future<Output = ()>>(
    mut watch: FolderWatch,
    clock: Clock,
    mut report_gap: impl FnMut(&str),
    mut load: impl FnMut() -> F,
) {
    let mut last_reason = None;
    loop {
        let why = watch.watch_gap().map(str::to_owned);
        if let Some(why) = why.as_deref().filter(|why| last_reason.as_deref() != Some(*why)) {
            report_gap(why);
        }
        last_reason = why;
        load().await;
        wait_until_quiet(clock, || watch.changed()).await;
        let renewed = run_blocking(move || {
            watch.renew();
            watch
        });
        let Some(next) = renewed.await else { return };
        watch = next;
    }
}

/// Runs a folder walk on a blocking thread; returns nothing if the runtime shuts down.
async fn run_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Some(done),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => None,
        },
    }
}

/// Waits for a change, and then until the folder is quiet.
async fn wait_until_quiet<F: Future<Output = ()>>(clock: Clock, changed: impl Fn() -> F) {
    changed().await;
    let since = clock.elapsed();
    while tokio::time::timeout(QUIET, changed()).await.is_ok()
        && clock.elapsed().saturating_sub(since) < MAX_WAIT
    {}
}

/// The result of a reload.
#[derive(Debug)]
pub enum ReloadOutcome {
    /// New content is served.
    New(Arc<RegistryIndex>),
    /// The content is unchanged.
    Same(Arc<RegistryIndex>),
    /// The catalog is valid, but [`WatchedFolder::judge`] refuses it.
    Refused(Refusal),
    /// The folder is invalid; the old content is still served.
    Bad(LoadError),
    /// The reload failed for a reason of the process, not of the catalog.
    Lost(String),
}

/// Why a valid catalog must not be served.
pub type Refusal = Box<dyn std::error::Error + Send + Sync>;

/// Refuses a valid catalog that must not be served.
pub type CatalogValidator = Arc<dyn Fn(&Catalog) -> Result<(), Refusal> + Send + Sync>;

/// A folder that is served.
#[derive(Clone)]
pub struct WatchedFolder {
    /// The folder.
    pub folder: PathBuf,
    /// The options for reading it.
    pub options: LoadOptions,
    /// The clock.
    pub clock: Clock,
    /// The requirements of a catalog besides being valid.
    pub judge: CatalogValidator,
}

impl WatchedFolder {
    /// Reads the folder once and serves its content if that is valid.
    pub async fn load(&self, served: &ServedCatalog) -> ReloadOutcome {
        let Self { folder, options, judge, .. } = self.clone();
        let before = served.index();
        let modified = modified(SystemTime::from(self.clock.now()), before.as_deref());
        let outcome = tokio::task::spawn_blocking(move || {
            let catalog = match Catalog::load(&folder, &options) {
                Ok(catalog) => catalog,
                Err(error) => return ReloadOutcome::Bad(error),
            };
            match before {
                Some(index) if index.catalog().digest() == catalog.digest() => {
                    ReloadOutcome::Same(index)
                }
                _ => match judge(&catalog) {
                    Ok(()) => {
                        let index = RegistryIndex::new(catalog, modified);
                        // Builds the tables here, so that no query waits for them.
                        index.warm();
                        ReloadOutcome::New(Arc::new(index))
                    }
                    Err(error) => ReloadOutcome::Refused(error),
                },
            }
        });
        let outcome = outcome.await.unwrap_or_else(|error| {
            ReloadOutcome::Lost(format!("loading the catalog ended unexpectedly: {error}"))
        });
        match &outcome {
            ReloadOutcome::New(index) | ReloadOutcome::Same(index) => served.put(Arc::clone(index)),
            ReloadOutcome::Bad(error) => served.fail(error.headline()),
            ReloadOutcome::Refused(error) => served.fail(error.to_string()),
            ReloadOutcome::Lost(why) => served.fail(why.as_str()),
        }
        outcome
    }
}

/// The modification time of new content: later than the old one in the whole seconds of HTTP.
/// Otherwise two changes in one second would look the same to a client that asks by time.
pub fn modified(now: SystemTime, before: Option<&RegistryIndex>) -> SystemTime {
    let least = before.map(|index| index.modified() + Duration::from_secs(1));
    least.map_or(now, |least| now.max(least))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::Notify;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn a_folder_is_read_when_it_is_quiet() {
        let (change, clock) = (Arc::new(Notify::new()), Clock::system());
        let wait = tokio::spawn({
            let change = Arc::clone(&change);
            async move { wait_until_quiet(clock, || change.notified()).await }
        });
        // Each change restarts the quiet period.
        for _ in 0..3 {
            change.notify_one();
            tokio::task::yield_now().await;
            advance(QUIET / 2).await;
            assert!(!wait.is_finished());
        }
        tokio::task::yield_now().await;
        advance(QUIET).await;
        wait.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_folder_that_is_never_quiet_is_read_after_the_timeout() {
        let clock = Clock::system();
        let busy = || tokio::time::sleep(QUIET / 2);
        wait_until_quiet(clock, busy).await;
        assert!(clock.elapsed() >= MAX_WAIT, "not before patience has ended");
    }

    #[tokio::test(start_paused = true)]
    async fn an_unwatchable_folder_is_reported_once_and_polled() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("a/b");
        std::fs::create_dir_all(&deep).unwrap();
        let error = notify::Error::new(notify::ErrorKind::MaxFilesWatch).add_path(deep.clone());
        let watch = watch::tests::refused(folder.path(), &error);
        let clock = Clock::system();
        let (load_sender, mut loads) = tokio::sync::mpsc::unbounded_channel();
        let (reason_sender, mut reasons) = tokio::sync::mpsc::unbounded_channel();
        let following = tokio::spawn(reload_on_change(
            watch,
            clock,
            move |why| reason_sender.send(why.to_owned()).unwrap(),
            move || {
                load_sender.send(clock.elapsed()).unwrap();
                std::future::ready(())
            },
        ));
        let mut last = loads.recv().await.unwrap();
        for text in ["a", "ab"] {
            std::fs::write(deep.join("c.yaml"), text).unwrap();
            let next = loads.recv().await.unwrap();
            assert!(next >= last + watch::POLL, "{last:?} {next:?}");
            last = next;
        }
        // Nothing changes, so nothing is read.
        assert!(tokio::time::timeout(watch::POLL * 10, loads.recv()).await.is_err());
        let why = reasons.recv().await.unwrap();
        assert!(why.starts_with(&format!("{}: ", deep.display())), "{why}");
        assert!(reasons.try_recv().is_err(), "said once");
        following.abort();
    }

    #[test]
    fn every_content_has_its_own_modification_second() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(100);
        assert_eq!(modified(now, None), now);
    }
}
