//! Tells when a folder changes.

use notify::event::{AccessKind, AccessMode};
use notify::{Config, Event, EventHandler, EventKind, RecommendedWatcher, RecursiveMode, Watcher};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::Notify;

/// Follows a folder and, because a folder can be exchanged as a whole, the one around it.
pub(super) struct FolderWatch {
    watcher: RecommendedWatcher,
    folder: PathBuf,
    changed: Arc<Notify>,
}

impl FolderWatch {
    /// Starts to follow. The folder need not exist. Blocks as long as walking the folder takes.
    pub(super) fn start(folder: &Path) -> notify::Result<Self> {
        let changed = Arc::new(Notify::new());
        let (signal, inside) = (Arc::clone(&changed), folder.to_owned());
        let watcher = watcher(move |event: notify::Result<Event>| {
            // After an error anything may have been missed.
            if event.map_or(true, |event| is_change(&event, &inside)) {
                signal.notify_one();
            }
        })?;
        let mut watch = Self { watcher, folder: folder.to_owned(), changed };
        if let Some(parent) = folder.parent().filter(|it| it.is_dir()) {
            watch.watcher.watch(parent, RecursiveMode::NonRecursive)?;
        }
        watch.renew();
        Ok(watch)
    }

    /// Follows the folder that is there now: another one may have taken its place. Blocks as
    /// long as walking the folder takes.
    pub(super) fn renew(&mut self) {
        // Neither failing matters: the folder is gone, and its parent tells when it comes back.
        let _ = self.watcher.unwatch(&self.folder);
        let _ = self.watcher.watch(&self.folder, RecursiveMode::Recursive);
    }

    /// Returns when something changed since the last call returned.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }
}

/// What is behind a symbolic link to a folder is no part of a catalog, and could be everything.
fn watcher(hear: impl EventHandler) -> notify::Result<RecommendedWatcher> {
    RecommendedWatcher::new(hear, Config::default().with_follow_symlinks(false))
}

/// Whether an event can mean other content: not reading, and not what happens beside the folder.
fn is_change(event: &Event, folder: &Path) -> bool {
    let written = match event.kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        EventKind::Access(_) => false,
        _ => true,
    };
    written && (event.paths.is_empty() || event.paths.iter().any(|it| it.starts_with(folder)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use notify::event::{CreateKind, ModifyKind};

    #[cfg(unix)]
    #[test]
    fn folders_behind_links_are_not_followed() {
        let (inside, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::create_dir(outside.path().join("deep")).unwrap();
        std::os::unix::fs::symlink(outside.path(), inside.path().join("link")).unwrap();
        let (tell, told) = std::sync::mpsc::channel();
        let mut watcher = watcher(tell).unwrap();
        watcher.watch(inside.path(), RecursiveMode::Recursive).unwrap();
        // Told in this order, if the first are told at all.
        std::fs::write(outside.path().join("deep/a.yaml"), "a").unwrap();
        std::fs::write(outside.path().join("a.yaml"), "a").unwrap();
        std::fs::write(inside.path().join("b.yaml"), "b").unwrap();
        let paths = told.iter().flat_map(|event| event.unwrap().paths);
        let first = paths.into_iter().find(|path| path.extension().is_some());
        assert_eq!(first, Some(inside.path().join("b.yaml")));
    }

    #[test]
    fn reading_and_neighbours_are_no_change() {
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
