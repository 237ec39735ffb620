//! Follows folders: content is read again when it has changed and come to rest.
//!
//! ```text
//! folder ── change ─► wait until quiet ─► read (own thread) ─┬─ good ─► served from now on
//!                                                            └─ bad ──► what was goes on, and why
//! ```
//!
//! Nobody who reads a catalog waits for any of this: the new index is made beside the old one and
//! put in its place.

mod watch;

use crate::{Index, Served};
use mainstay_catalog::{Catalog, LoadError, LoadOptions};
use mainstay_clock::Clock;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};
use watch::FolderWatch;

/// How long a folder must be quiet before it is read: writers need several steps.
const QUIET: Duration = Duration::from_millis(50);
/// After this while a folder is read although it still changes.
const PATIENCE: Duration = Duration::from_millis(500);

/// Calls `load` at once and again whenever the folder has changed, until this is dropped. The
/// folder need not exist yet. Where the system does not follow all of it, `unseen` hears why, and
/// changes are noticed some seconds later.
pub async fn follow<F: Future<Output = ()>>(
    folder: &Path,
    clock: Clock,
    unseen: impl FnMut(&str),
    load: impl FnMut() -> F,
) {
    // Followed before it is first read, so that nothing is missed in between.
    let start = folder.to_owned();
    let Some(watch) = aside(move || FolderWatch::start(&start)).await else { return };
    keep_reading(watch, clock, unseen, load).await;
}

async fn keep_reading<F: Future<Output = ()>>(
    mut watch: FolderWatch,
    clock: Clock,
    mut unseen: impl FnMut(&str),
    mut load: impl FnMut() -> F,
) {
    let mut told = None;
    loop {
        let why = watch.unseen().map(str::to_owned);
        if let Some(why) = why.as_deref().filter(|why| told.as_deref() != Some(*why)) {
            unseen(why);
        }
        told = why;
        load().await;
        at_rest(clock, || watch.changed()).await;
        let renewed = aside(move || {
            watch.renew();
            watch
        });
        let Some(next) = renewed.await else { return };
        watch = next;
    }
}

/// Does what walks folders where nobody waits for it; nothing if the runtime ends.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => Some(done),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => None,
        },
    }
}

/// Waits for a change, and then until there are no more for a while.
async fn at_rest<F: Future<Output = ()>>(clock: Clock, changed: impl Fn() -> F) {
    changed().await;
    let since = clock.elapsed();
    while tokio::time::timeout(QUIET, changed()).await.is_ok()
        && clock.elapsed().saturating_sub(since) < PATIENCE
    {}
}

/// What reading a folder brought.
#[derive(Debug)]
pub enum Outcome {
    /// New content is served.
    New(Arc<Index>),
    /// The content is what it was.
    Same(Arc<Index>),
    /// The catalog is sound and still not one to serve here, which [`Source::judge`] says.
    Refused(Refusal),
    /// The folder cannot be served; what was served before still is.
    Bad(LoadError),
    /// The folder cannot be served for a reason of the process, not of the catalog.
    Lost(String),
}

/// Why a sound catalog shall not be served: whoever serves it says that.
pub type Refusal = Box<dyn std::error::Error + Send + Sync>;

/// Says why a sound catalog shall not be served, if it shall not.
pub type Judge = Arc<dyn Fn(&Catalog) -> Result<(), Refusal> + Send + Sync>;

/// A folder whose content is served.
#[derive(Clone)]
pub struct Source {
    /// The folder.
    pub folder: PathBuf,
    /// How to read it.
    pub options: LoadOptions,
    /// What time it is.
    pub clock: Clock,
    /// What is asked of a catalog besides being sound.
    pub judge: Judge,
}

impl Source {
    /// Reads the folder once and serves what is in it, if it is sound.
    pub async fn load(&self, served: &Served) -> Outcome {
        let Self { folder, options, judge, .. } = self.clone();
        let before = served.index();
        let modified = modified(SystemTime::from(self.clock.now()), before.as_deref());
        let made = tokio::task::spawn_blocking(move || {
            let catalog = match Catalog::load(&folder, &options) {
                Ok(catalog) => catalog,
                Err(error) => return Outcome::Bad(error),
            };
            match before {
                Some(index) if index.catalog().digest() == catalog.digest() => Outcome::Same(index),
                _ => match judge(&catalog) {
                    Ok(()) => {
                        let index = Index::new(catalog, modified);
                        // Nobody waits for the tables then.
                        index.warm();
                        Outcome::New(Arc::new(index))
                    }
                    Err(error) => Outcome::Refused(error),
                },
            }
        });
        let outcome = made.await.unwrap_or_else(|error| {
            Outcome::Lost(format!("loading the catalog ended unexpectedly: {error}"))
        });
        match &outcome {
            Outcome::New(index) | Outcome::Same(index) => served.put(Arc::clone(index)),
            Outcome::Bad(error) => served.fail(error.headline()),
            Outcome::Refused(error) => served.fail(error.to_string()),
            Outcome::Lost(why) => served.fail(why.as_str()),
        }
        outcome
    }
}

/// When new content counts as made: later, in the full seconds of HTTP, than what was before.
/// Otherwise two changes in one second would look alike to who asks by time.
pub fn modified(now: SystemTime, before: Option<&Index>) -> SystemTime {
    let least = before.map(|index| index.modified() + Duration::from_secs(1));
    least.map_or(now, |least| now.max(least))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::Notify;
    use tokio::time::advance;

    #[tokio::test(start_paused = true)]
    async fn a_folder_is_read_when_it_has_come_to_rest() {
        let (change, clock) = (Arc::new(Notify::new()), Clock::system());
        let wait = tokio::spawn({
            let change = Arc::clone(&change);
            async move { at_rest(clock, || change.notified()).await }
        });
        // Each change starts the quiet time anew.
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
    async fn a_folder_that_never_rests_is_read_all_the_same() {
        let clock = Clock::system();
        let busy = || tokio::time::sleep(QUIET / 2);
        at_rest(clock, busy).await;
        assert!(clock.elapsed() >= PATIENCE, "not before patience has ended");
    }

    #[tokio::test(start_paused = true)]
    async fn what_the_system_does_not_follow_is_told_once_and_looked_at_now_and_then() {
        let folder = tempfile::tempdir().unwrap();
        let deep = folder.path().join("a/b");
        std::fs::create_dir_all(&deep).unwrap();
        let error = notify::Error::new(notify::ErrorKind::MaxFilesWatch).add_path(deep.clone());
        let watch = watch::tests::refused(folder.path(), &error);
        let clock = Clock::system();
        let (tell, mut told) = tokio::sync::mpsc::unbounded_channel();
        let (say, mut said) = tokio::sync::mpsc::unbounded_channel();
        let following = tokio::spawn(keep_reading(
            watch,
            clock,
            move |why| say.send(why.to_owned()).unwrap(),
            move || {
                tell.send(clock.elapsed()).unwrap();
                std::future::ready(())
            },
        ));
        let mut last = told.recv().await.unwrap();
        for text in ["a", "ab"] {
            std::fs::write(deep.join("c.yaml"), text).unwrap();
            let next = told.recv().await.unwrap();
            assert!(next >= last + watch::POLL, "{last:?} {next:?}");
            last = next;
        }
        // Nothing changes, so nothing is read.
        assert!(tokio::time::timeout(watch::POLL * 10, told.recv()).await.is_err());
        let why = said.recv().await.unwrap();
        assert!(why.starts_with(&format!("{}: ", deep.display())), "{why}");
        assert!(said.try_recv().is_err(), "said once");
        following.abort();
    }

    #[test]
    fn every_content_has_a_second_of_its_own() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(100);
        assert_eq!(modified(now, None), now);
    }
}
