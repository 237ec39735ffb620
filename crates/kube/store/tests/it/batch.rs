//! Group commit: changes that become durable together are decided together.

use crate::support::*;
use mainstay_store::{
    CommitError, Engine, EngineError, Event, Loader, OpenError, Options, Precondition, Recovery,
    Store,
};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

/// An engine whose appends wait for the test, so that a batch gathers behind each.
struct Gate {
    appended: Sender<usize>,
    verdicts: Mutex<Receiver<Result<(), EngineError>>>,
}

impl Engine for Gate {
    fn load(&mut self, loader: &mut Loader) -> Result<Recovery, OpenError> {
        loader.begin_history(1);
        Ok(Recovery::default())
    }

    fn append(&mut self, events: &[Arc<Event>]) -> Result<(), EngineError> {
        // The test may have stopped listening.
        let _ = self.appended.send(events.len());
        let verdict = self.verdicts.get_mut().ok().and_then(|verdicts| verdicts.recv().ok());
        verdict.unwrap_or(Ok(()))
    }
}

/// A store whose appends are released by sending to the channel.
fn gated() -> (Store, Receiver<usize>, Sender<Result<(), EngineError>>) {
    let ((appended, sizes), (release, verdicts)) = (channel(), channel());
    let gate = Gate { appended, verdicts: Mutex::new(verdicts) };
    (Store::with_engine(Box::new(gate), Options::default()).unwrap().0, sizes, release)
}

/// Makes the engine wait in the append of a change, so that later changes gather behind it.
async fn hold(store: &Store, sizes: &Receiver<usize>) {
    let store = store.clone();
    tokio::spawn(async move { put_namespace(&store, "a", false).await });
    tokio::task::yield_now().await;
    assert_eq!(sizes.recv().unwrap(), 1);
}

#[tokio::test]
async fn changes_of_one_batch_are_checked_against_each_other() {
    let (store, sizes, release) = gated();
    hold(&store, &sizes).await;
    let (created, twice, replaced, stale, deleted, missing, ()) = tokio::join!(
        put_guarded(&store, ("a", "x")),
        put_guarded(&store, ("a", "x")),
        put(&store, ("a", "x"), "2", Precondition::Revision(3)),
        put(&store, ("a", "x"), "3", Precondition::Revision(3)),
        delete(&store, ("a", "x"), Precondition::Revision(4)),
        delete(&store, ("a", "x"), Precondition::Any),
        async {
            assert_eq!(store.revision(), 1, "what is not durable is not visible");
            release.send(Ok(())).unwrap();
            release.send(Ok(())).unwrap();
        },
    );
    assert_eq!(sizes.recv().unwrap(), 3);
    assert_eq!(object_line(&created.unwrap()), "a/x=guarded@3");
    assert!(matches!(twice, Err(CommitError::AlreadyExists { current }) if current.revision == 3));
    assert_eq!(object_line(&replaced.unwrap()), "a/x=2@4");
    assert!(matches!(stale, Err(CommitError::Stale { current, .. }) if current.revision == 4));
    assert_eq!(object_line(&deleted.unwrap()), "a/x=2@5");
    assert!(matches!(missing, Err(CommitError::Missing(_))));
    let mut watch = store.watch(MAPS, 2).unwrap();
    let lines: Vec<_> =
        watch.next_batch(9).await.unwrap().iter().map(|event| event_line(event)).collect();
    assert_eq!(
        lines,
        [
            "ADDED a/x=guarded@3",
            "MODIFIED a/x=2@4 (was a/x=guarded@3)",
            "DELETED a/x=2@5 (was a/x=2@4)"
        ]
    );
}

#[tokio::test]
async fn a_failed_batch_fails_every_change_that_depends_on_it() {
    let (store, sizes, release) = gated();
    let disk_full = || Err(EngineError::Other("the disk is full".into()));
    hold(&store, &sizes).await;
    let (created, exists, ()) = tokio::join!(
        put(&store, ("a", "x"), "1", Precondition::Absent),
        put(&store, ("a", "x"), "1", Precondition::Absent),
        async {
            release.send(Ok(())).unwrap();
            release.send(disk_full()).unwrap();
        },
    );
    for refused in [created, exists] {
        let text = refused.unwrap_err().to_string();
        assert_eq!(text, "the change was not saved: the disk is full");
    }
    assert_eq!((store.revision(), store.list(MAPS, None).len()), (2, 0));
    // Its revisions were not visible and are reused by the next change.
    release.send(Ok(())).unwrap();
    assert_eq!(
        object_line(&put(&store, ("a", "y"), "1", Precondition::Absent).await.unwrap()),
        "a/y=1@3"
    );
}

#[tokio::test]
async fn callers_of_an_unsaved_change_get_the_error() {
    let (store, _sizes, release) = gated();
    let mut refuses = std::pin::pin!(store.refuses());
    release.send(Ok(())).unwrap();
    put(&store, ("a", "x"), "1", Precondition::Absent).await.unwrap();
    assert!(futures::poll!(refuses.as_mut()).is_pending(), "this one was saved");
    release.send(Err(EngineError::Other("the disk is full".into()))).unwrap();
    let refused = put(&store, ("a", "y"), "1", Precondition::Absent).await.unwrap_err();
    assert_eq!(refuses.await.to_string(), refused.to_string());
    // Later callers get it too, although a change is saved again.
    release.send(Ok(())).unwrap();
    put(&store, ("a", "z"), "1", Precondition::Absent).await.unwrap();
    assert!(store.trouble().is_none());
    assert_eq!(store.refuses().await.to_string(), refused.to_string());
}

#[tokio::test]
async fn a_cancelled_caller_does_not_affect_the_others() {
    let (store, sizes, release) = gated();
    {
        let (dropped, kept) = (put(&store, ("a", "x"), "1", Precondition::Absent), async {
            sizes.recv().unwrap();
        });
        tokio::pin!(dropped);
        tokio::select! { biased; _ = &mut dropped => panic!("not released"), () = kept => {} }
    }
    release.send(Ok(())).unwrap();
    release.send(Ok(())).unwrap();
    put(&store, ("a", "y"), "1", Precondition::Absent).await.unwrap();
    assert_eq!(store.list(MAPS, None).len(), 2);
}
