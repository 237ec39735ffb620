//! Watches: what differs from what a client was told.
//!
//! A watch remembers what it told of, and compares that with what there is whenever anything changed.
//! Somebody who reads slowly is told of the last state alone, and nothing waits for him.

use crate::answer::{Content, json, revision, too_old};
use crate::query::Query;
use crate::select::{Item, Key, Selection};
use crate::state::{Packages, State};
use crate::table::{Seen, Shape};
use bytes::Bytes;
use futures::StreamExt as _;
use futures::stream;
use http::Response;
use mainstay_object::Status;
use std::collections::{BTreeMap, VecDeque};
use std::pin::Pin;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Interval, Sleep};

/// How often who wants bookmarks learns how far the watch has come.
const BOOKMARK_EVERY: Duration = Duration::from_mins(1);
/// How long a watch lasts that names no end.
const USUAL: Duration = Duration::from_mins(45);

/// A line to be sent.
enum Line {
    Added(Box<Item>),
    Modified(Box<Item>),
    Deleted(Box<Seen>),
    /// That everything there is has been told.
    InitialEnd(u64),
}

struct Watching {
    packages: Packages,
    selection: Selection,
    shape: Shape,
    told: BTreeMap<Key, Seen>,
    lines: VecDeque<Line>,
    /// The revision up to which the lines tell.
    at: u64,
    changes: watch::Receiver<u64>,
    bookmarks: Option<Interval>,
    end: Pin<Box<Sleep>>,
    titled: bool,
}

impl Packages {
    pub(crate) async fn watch(
        &self,
        selection: Selection,
        shape: Shape,
        query: &Query,
    ) -> Result<Response<Content>, Status> {
        let after = revision(query)?;
        let initial = query.text("sendInitialEvents");
        if !initial.is_empty() && query.text("resourceVersionMatch") != "NotOlderThan" {
            return Err(Status::bad_request(
                "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
            ));
        }
        let bookmarks = query.flag("allowWatchBookmarks");
        let end_told = bookmarks && initial == "true";
        // What there is comes first if that is asked for, or if no revision is named.
        let first = initial == "true" || after == 0 && initial.is_empty();
        let seconds = query.text("timeoutSeconds").parse().ok().filter(|seconds| *seconds > 0);
        let lasts = seconds.map_or(USUAL, Duration::from_secs);
        let changes = self.inner.revision.subscribe();
        let asked = selection.clone();
        let begun = self.off(move |packages| {
            let state = packages.state();
            let items = packages.select(&state, &asked);
            let told = match (first, after) {
                (_, after) if after > state.revision => None,
                (true, _) => Some(BTreeMap::new()),
                (false, 0) => Some(of(&items)),
                (false, after) => packages.told_at(&state, &items, after, &asked),
            };
            told.map(|told| (state.revision, difference(&state, &told, &items), of(&items)))
        });
        let begun = begun.await.ok_or_else(|| Status::internal("the watch could not begin"))?;
        let Some((at, mut lines, told)) = begun else {
            // As an event: clients list again, as they do when a watch ends so.
            let event = line("ERROR", too_old(after).to_value().to_string().as_bytes());
            return Ok(json(Content::Whole(event)));
        };
        if end_told {
            lines.push_back(Line::InitialEnd(at));
        }
        let watching = Watching {
            packages: self.clone(),
            selection,
            shape,
            told,
            lines,
            at,
            changes,
            bookmarks: bookmarks.then(|| {
                let mut interval = tokio::time::interval(BOOKMARK_EVERY);
                interval.reset();
                interval
            }),
            end: Box::pin(tokio::time::sleep(lasts)),
            titled: false,
        };
        let lines = stream::unfold(watching, |mut watching| async move {
            watching.next().await.map(|line| (line, watching))
        });
        Ok(json(Content::Stream(lines.boxed())))
    }

    /// What a client knew that saw a revision: what there is, with all that came after undone. None if
    /// that is not remembered.
    fn told_at(
        &self,
        state: &State,
        items: &[Item],
        revision: u64,
        selection: &Selection,
    ) -> Option<BTreeMap<Key, Seen>> {
        if revision < state.complete_since || revision > state.revision {
            return None;
        }
        let mut told = of(items);
        for past in state.since(revision) {
            let key = (past.catalog.clone(), past.package.clone());
            let namespace = selection.seen_in(&past.catalog, &self.inner.global);
            let before = past.before.clone().zip(namespace);
            match before.filter(|(brief, namespace)| selection.matches(brief, namespace)) {
                // Older than whatever there is now, so it counts as changed.
                Some((brief, namespace)) => {
                    told.insert(key, Seen { brief, namespace, revision });
                }
                None => drop(told.remove(&key)),
            }
        }
        Some(told)
    }
}

fn of(items: &[Item]) -> BTreeMap<Key, Seen> {
    items.iter().map(|item| (item.key(), item.seen())).collect()
}

/// What tells of the difference between what was told and what there is, in the order of revisions.
fn difference(state: &State, told: &BTreeMap<Key, Seen>, items: &[Item]) -> VecDeque<Line> {
    let mut lines: Vec<(u64, Line)> = Vec::new();
    let now = of(items);
    let gone = told.iter().filter(|(key, _)| !now.contains_key(*key));
    for ((catalog, package), seen) in gone {
        let of_it =
            |past: &&crate::state::Past| past.catalog == *catalog && past.package == *package;
        let revision =
            state.since(seen.revision).find(of_it).map_or(state.revision, |change| change.revision);
        let seen = Seen { revision, ..seen.clone() };
        // Another catalog may have it too, which is what the name means now.
        let same = |item: &&Item| item.brief.name == *package && item.namespace == seen.namespace;
        let other = items.iter().find(same).cloned();
        lines.push((revision, Line::Deleted(Box::new(seen))));
        lines.extend(other.map(|item| (revision, Line::Added(Box::new(item)))));
    }
    for item in items {
        let revision = item.shown.revision;
        match told.get(&item.key()) {
            None => lines.push((revision, Line::Added(Box::new(item.clone())))),
            Some(seen) if seen.revision != revision => {
                lines.push((revision, Line::Modified(Box::new(item.clone()))));
            }
            Some(_) => {}
        }
    }
    lines.sort_by_key(|(revision, _)| *revision);
    lines.into_iter().map(|(_, line)| line).collect()
}

/// What woke a watch up.
enum Woken {
    Changed,
    Bookmark,
    End,
}

impl Watching {
    /// The next line; none at the end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            while let Some(line) = self.lines.pop_front() {
                if let Some(line) = self.written(line).await {
                    return Some(line);
                }
            }
            match self.wake().await {
                Woken::Changed => self.compare().await?,
                Woken::Bookmark => return Some(self.mark(self.at, false)),
                Woken::End => return None,
            }
        }
    }

    async fn wake(&mut self) -> Woken {
        let bookmark = async {
            match &mut self.bookmarks {
                Some(interval) => drop(interval.tick().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            changed = self.changes.changed() => if changed.is_ok() { Woken::Changed } else { Woken::End },
            () = bookmark => Woken::Bookmark,
            () = &mut self.end => Woken::End,
            () = self.packages.inner.stop.cancelled() => Woken::End,
        }
    }

    /// Looks at what there is. Nothing of it is held but what is told.
    async fn compare(&mut self) -> Option<()> {
        let told = std::mem::take(&mut self.told);
        let selection = self.selection.clone();
        let compared = self.packages.off(move |packages| {
            let state = packages.state();
            let items = packages.select(&state, &selection);
            (state.revision, difference(&state, &told, &items), of(&items))
        });
        (self.at, self.lines, self.told) = compared.await?;
        Some(())
    }

    async fn written(&mut self, told: Line) -> Option<Bytes> {
        let (kind, seen, item) = match told {
            Line::InitialEnd(revision) => return Some(self.mark(revision, true)),
            Line::Deleted(seen) => ("DELETED", *seen, None),
            Line::Added(item) => ("ADDED", item.seen(), Some(item)),
            Line::Modified(item) => ("MODIFIED", item.seen(), Some(item)),
        };
        let shape = self.shape;
        let status = match item {
            None => seen.last_status(),
            Some(item) => {
                self.packages.off(move |packages| packages.status_for(&item, shape)).await??
            }
        };
        let now = self.packages.inner.clock.now();
        let titled = !std::mem::replace(&mut self.titled, true);
        Some(line(kind, &shape.one(&seen, &status, titled, now)))
    }

    fn mark(&mut self, revision: u64, initial_end: bool) -> Bytes {
        let titled = !std::mem::replace(&mut self.titled, true);
        line("BOOKMARK", self.shape.mark(revision, initial_end, titled).as_bytes())
    }
}

fn line(kind: &str, object: &[u8]) -> Bytes {
    let head = format!("{{\"type\":\"{kind}\",\"object\":");
    [head.as_bytes(), object, b"}\n"].concat().into()
}
