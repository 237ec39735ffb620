//! Folder watch: notices changes of a folder.

use super::run_blocking;
use mainstay_catalog::{FileSource as _, FolderSource};
use notify::event::{AccessKind, AccessMode};
use notify::{
    Config, ErrorKind, Event, EventHandler, EventKind, RecommendedWatcher, RecursiveMode, Watcher,
};
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::sleep;

/// How often a folder that is not watched completely is polled.
pub(super) const POLL: Duration = Duration::from_secs(5);

/// Watches a folder and its parent, because a folder can be replaced as a whole.
///
/// The system may refuse to watch a subfolder: the number of watches is bounded, and a folder may
/// be unreadable. Then the remaining subfolders are not watched either, so the folder is polled.
pub(super) struct FolderWatch {
    /// None if the system cannot watch at all.
    watcher: Option<RecommendedWatcher>,
    folder: PathBuf,
    changed: Arc<Notify>,
    /// Why the parent folder is not watched.
    parent_error: Option<String>,
    watch_gap: Option<WatchGap>,
}

/// Why a folder is not watched completely, and its fingerprint before it was read.
struct WatchGap {
    reason: String,
    fingerprint: u64,
}

impl FolderWatch {
    /// Starts the watch. The folder need not exist. Blocks while it walks the folder.
    pub(super) fn start(folder: &Path) -> Self {
        let changed = Arc::new(Notify::new());
        let (signal, inside) = (Arc::clone(&changed), folder.to_owned());
        let watcher = watcher(move |event: notify::Result<Event>| {
            // After an error any change may have been missed.
            if event.map_or(true, |event| is_change(&event, &inside)) {
                signal.notify_one();
            }
        });
        let (watcher, parent_error) = match watcher {
            Ok(mut watcher) => {
                let parent = folder.parent().filter(|parent| parent.is_dir());
                let watched = parent
                    .map_or(Ok(()), |parent| watcher.watch(parent, RecursiveMode::NonRecursive));
                (Some(watcher), watched.err().as_ref().map(describe_error))
            }
            Err(error) => (None, Some(describe_error(&error))),
        };
        let mut watch =
            Self { watcher, folder: folder.to_owned(), changed, parent_error, watch_gap: None };
        watch.renew();
        watch
    }

    /// Watches the current folder, which may have replaced another one. Blocks while it walks the
    /// folder.
    pub(super) fn renew(&mut self) {
        let followed = match &mut self.watcher {
            Some(watcher) => {
                // The watch may be gone with the folder.
                let _ = watcher.unwatch(&self.folder);
                watcher.watch(&self.folder, RecursiveMode::Recursive)
            }
            None => Ok(()),
        };
        self.note(&followed);
    }

    fn note(&mut self, followed: &notify::Result<()>) {
        let part = match followed {
            // The parent of a missing folder is watched, and reports its return.
            Ok(()) | Err(notify::Error { kind: ErrorKind::PathNotFound, .. }) => None,
            Err(_) if !self.folder.exists() => None,
            Err(error) => Some(describe_error(error)),
        };
        let watch_gap = self.parent_error.clone().or(part);
        self.watch_gap =
            watch_gap.map(|reason| WatchGap { reason, fingerprint: fingerprint(&self.folder) });
    }

    /// Why the folder is not watched completely; none if it is.
    pub(super) fn watch_gap(&self) -> Option<&str> {
        self.watch_gap.as_ref().map(|watch_gap| watch_gap.reason.as_str())
    }

    /// Returns when something has changed since the last call returned.
    pub(super) async fn changed(&self) {
        let Some(WatchGap { fingerprint, .. }) = self.watch_gap else {
            return self.changed.notified().await;
        };
        tokio::select! {
            () = self.changed.notified() => {}
            () = wait_for_change(&self.folder, fingerprint) => {}
        }
    }
}

/// Polls a folder and returns when its fingerprint has changed.
async fn wait_for_change(folder: &Path, before: u64) {
    loop {
        sleep(POLL).await;
        let folder = folder.to_owned();
        if run_blocking(move || fingerprint(&folder)).await != Some(before) {
            return;
        }
    }
}

/// A hash of the names, sizes and times of the files in a folder. Blocks while it walks the folder.
fn fingerprint(folder: &Path) -> u64 {
    let mut hasher = DefaultHasher::new();
    let files = FolderSource::new(folder).files();
    for file in files.iter().flatten() {
        let facts = fs::metadata(folder.join(&file.path)).map(|facts| {
            let changed = (facts.ctime(), facts.ctime_nsec());
            (facts.ino(), facts.len(), changed, facts.modified().ok())
        });
        (&file.path, facts.ok()).hash(&mut hasher);
    }
    files.err().map(|error| error.to_string()).hash(&mut hasher);
    hasher.finish()
}

/// Why a folder is not watched, with a remedy.
fn describe_error(error: &notify::Error) -> String {
    /// `EMFILE`: the process has no room for another watch.
    const TOO_MANY: i32 = 24;
    let place = error.paths.first().map(|path| format!("{}: ", path.display()));
    let place = place.unwrap_or_default();
    match &error.kind {
        ErrorKind::MaxFilesWatch => {
            format!("{place}the system watches no more folders (raise fs.inotify.max_user_watches)")
        }
        ErrorKind::Io(error) if error.raw_os_error() == Some(TOO_MANY) => format!(
            "{place}the system watches for no more programs (raise fs.inotify.max_user_instances)"
        ),
        ErrorKind::Io(error) if error.kind() == io::ErrorKind::PermissionDenied => format!(
            "{place}permission denied (make it readable for the account that runs this process)"
        ),
        _ => error.to_string(),
    }
}

/// Links are not followed: the target of a symbolic link is no part of a catalog, and could be the
/// whole disk.
fn watcher(handler: impl EventHandler) -> notify::Result<RecommendedWatcher> {
    RecommendedWatcher::new(handler, Config::default().with_follow_symlinks(false))
}

/// Whether an event may change the content: reads and events beside the folder do not.
fn is_change(event: &Event, folder: &Path) -> bool {
    let written = match event.kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        EventKind::Access(_) => false,
        _ => true,
    };
    written && (event.paths.is_empty() || event.paths.iter().any(|path| path.starts_with(folder)))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use notify::event::{CreateKind, ModifyKind};

    #[cfg(unix)]
    #[test]
    fn symbolic_links_are_not_watched() {
        let (inside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir(outside.path().join("deep")).unwrap();
        std::os::unix::fs::symlink(outside.path(), inside.path().join("link")).unwrap();
        let (events_sender, events) = std::sync::mpsc::channel();
        let mut watcher = watcher(events_sender).unwrap();
        watcher.watch(inside.path(), RecursiveMode::Recursive).unwrap();
        // Events arrive in this order, if the first ones arrive at all.
        fs::write(outside.path().join("deep/a.yaml"), "a").unwrap();
        fs::write(outside.path().join("a.yaml"), "a").unwrap();
        fs::write(inside.path().join("b.yaml"), "b").unwrap();
        let paths = events.iter().flat_map(|event| event.unwrap().paths);
        let first = paths.into_iter().find(|path| path.extension().is_some());
        assert_eq!(first, Some(inside.path().join("b.yaml")));
    }

    /// A watch of a folder that the system refuses to watch.
    pub(in crate::reload) fn refused(folder: &Path, error: &notify::Error) -> FolderWatch {
        let parent_error = Some(describe_error(error));
        let (folder, changed) = (folder.to_owned(), Arc::default());
        let mut watch =
            FolderWatch { watcher: None, folder, changed, parent_error, watch_gap: None };
        watch.renew();
        watch
    }

    #[test]
    fn an_unwatched_folder_is_reported_with_its_path_and_a_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let mut watch = FolderWatch::start(folder.path());
        assert_eq!(watch.watch_gap(), None);
        let io = |error: io::Error| ErrorKind::Io(error);
        for (kind, wanted) in [
            (
                ErrorKind::MaxFilesWatch,
                Some(
                    "/c/d: the system watches no more folders (raise fs.inotify.max_user_watches)",
                ),
            ),
            (
                io(io::Error::from_raw_os_error(13)),
                Some(
                    "/c/d: permission denied (make it readable for the account that runs this process)",
                ),
            ),
            (
                io(io::Error::from_raw_os_error(24)),
                Some(
                    "/c/d: the system watches for no more programs (raise fs.inotify.max_user_instances)",
                ),
            ),
            // The folder was deleted during the walk, which its parent reports.
            (ErrorKind::PathNotFound, None),
        ] {
            watch.note(&Err(notify::Error::new(kind).add_path("/c/d".into())));
            assert_eq!(watch.watch_gap(), wanted);
        }
        watch.note(&Ok(()));
        assert_eq!(watch.watch_gap(), None);
    }

    #[test]
    fn the_fingerprint_of_a_folder_changes_with_any_file() {
        let folder = tempfile::tempdir().unwrap();
        let (deep, missing) = (folder.path().join("a/b"), folder.path().join("none"));
        let mut fingerprints = vec![fingerprint(&missing), fingerprint(folder.path())];
        fs::create_dir_all(&deep).unwrap();
        for (file, text) in [("c.yaml", "a"), ("c.yaml", "ab"), ("d.yaml", ""), ("d.yaml", "")] {
            // Written beside and renamed: its size and time may be the same.
            fs::write(folder.path().join("new"), text).unwrap();
            fs::rename(folder.path().join("new"), deep.join(file)).unwrap();
            fingerprints.push(fingerprint(folder.path()));
            assert_eq!(fingerprints.last(), Some(&fingerprint(folder.path())));
        }
        fs::remove_file(deep.join("c.yaml")).unwrap();
        fingerprints.push(fingerprint(folder.path()));
        let different: std::collections::BTreeSet<u64> = fingerprints.iter().copied().collect();
        assert_eq!(different.len(), fingerprints.len(), "{fingerprints:?}");
    }

    #[test]
    fn reads_and_sibling_files_are_no_change() {
        let folder = Path::new("/c/folder");
        let open = EventKind::Access(AccessKind::Open(AccessMode::Any));
        let written = EventKind::Access(AccessKind::Close(AccessMode::Write));
        for (kind, path, wanted) in [
            (open, "/c/folder/a.yaml", false),
            (written, "/c/folder/a.yaml", true),
            (EventKind::Modify(ModifyKind::Any), "/c/folder/a.yaml", true),
            (EventKind::Create(CreateKind::Folder), "/c/folder", true),
            (EventKind::Create(CreateKind::File), "/c/other", false),
        ] {
            let event = Event::new(kind).add_path(path.into());
            assert_eq!(is_change(&event, folder), wanted, "{kind:?} {path}");
        }
    }
}
