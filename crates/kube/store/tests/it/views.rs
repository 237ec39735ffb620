//! Past views: how far back they reach, and that they end at the bounds.

use crate::support::*;
use mainstay_clock::Clock;
use mainstay_store::{Expired, History, Options, Precondition, Store, Views, WatchError};
use std::collections::BTreeSet;
use std::time::Duration;

fn forgetful(clock: Clock) -> Store {
    Store::in_memory(Options {
        history: History { min_events: 2, max_events: 2, ..History::default() },
        views: Views { max_count: 2, max_age: Duration::from_mins(5) },
        ..Options::new(clock)
    })
}

async fn put_all(store: &Store, texts: std::ops::Range<u32>) {
    for text in texts {
        put(store, ("a", "x"), &text.to_string(), Precondition::Any).await.unwrap();
    }
}

#[tokio::test]
async fn a_slow_watch_expires_and_delays_no_other() {
    let store = forgetful(Clock::system());
    let mut slow = store.watch(MAPS, 1).unwrap();
    put_all(&store, 2..6).await;
    let expired = Expired { requested: 1, oldest: 3 };
    assert_eq!(slow.try_next().unwrap_err(), expired);
    assert_eq!(slow.next().await.unwrap_err(), WatchError::Expired(expired));
    assert_eq!(expired.to_string(), "too old resource version: 1 (3)");
    assert_eq!(store.watch(MAPS, 2).unwrap_err(), Expired { requested: 2, oldest: 3 });
    assert_eq!(store.watch(MAPS, 3).unwrap().next().await.unwrap().revision, 4);
}

#[tokio::test]
async fn a_list_at_a_past_revision_is_exact_or_refused() {
    let store = forgetful(Clock::system());
    put_all(&store, 2..4).await;
    delete(&store, ("a", "x"), Precondition::Any).await.unwrap();
    put(&store, ("b", "y"), "5", Precondition::Absent).await.unwrap();
    let at = |revision| store.list_at(MAPS, None, revision).map(|list| object_lines(list.iter()));
    assert_eq!(at(5).unwrap(), ["b/y=5@5"]);
    assert_eq!(at(4).unwrap(), Vec::<String>::new());
    assert_eq!(at(3).unwrap(), ["a/x=3@3"]);
    assert_eq!(at(2).unwrap_err(), Expired { requested: 2, oldest: 3 });
    assert!(at(6).is_err(), "the future is not known");
    // A resource that was never written has always been empty.
    assert!(store.list_at("pods", None, 1).unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_kept_view_outlives_the_history_until_its_max_age() {
    let store = forgetful(Clock::system());
    put_all(&store, 2..3).await;
    let list = store.list(MAPS, Some("a"));
    store.keep(&list);
    put_all(&store, 3..9).await;
    let seen = || store.list_at(MAPS, Some("a"), 2).map(|list| object_lines(list.iter()));
    assert_eq!(seen().unwrap(), ["a/x=2@2"]);
    tokio::time::advance(Duration::from_mins(5)).await;
    assert!(seen().is_ok());
    tokio::time::advance(Duration::from_secs(1)).await;
    store.keep(&store.list(MAPS, None));
    assert!(seen().is_err());
}

#[tokio::test]
async fn the_number_of_kept_views_is_bounded() {
    let store = forgetful(Clock::system());
    for revision in 2..5 {
        put_all(&store, revision..revision + 1).await;
        store.keep(&store.list(MAPS, None));
    }
    put_all(&store, 5..9).await;
    let kept: Vec<_> =
        (2..6).filter(|revision| store.list_at(MAPS, None, *revision).is_ok()).collect();
    assert_eq!(kept, [3, 4]);
}

#[tokio::test(start_paused = true)]
async fn events_expire_by_the_injected_clock() {
    let history = History { min_events: 1, ..History::default() };
    let store = Store::in_memory(Options { history, ..Options::new(Clock::system()) });
    put_all(&store, 2..5).await;
    tokio::time::advance(Duration::from_secs(70)).await;
    put_all(&store, 5..6).await;
    assert!(store.watch(MAPS, 1).is_ok());
    tokio::time::advance(Duration::from_secs(10)).await;
    put_all(&store, 6..7).await;
    assert_eq!(store.watch(MAPS, 1).unwrap_err().oldest, 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_watches_share_one_encoding() {
    let store = in_memory();
    let tasks: Vec<_> = (0..1000)
        .map(|_| {
            let mut watch = store.watch(MAPS, 1).unwrap();
            tokio::spawn(async move {
                let event = watch.next().await.unwrap();
                (event_line(&event), event.frame().as_ptr() as usize)
            })
        })
        .collect();
    put_all(&store, 2..3).await;
    let mut revisions = BTreeSet::new();
    for task in tasks {
        revisions.insert(task.await.unwrap());
    }
    assert_eq!(revisions.len(), 1);
}

#[tokio::test]
async fn a_watch_ends_with_the_last_handle() {
    let store = in_memory();
    let mut watch = store.watch(MAPS, 1).unwrap();
    drop(store);
    assert_eq!(watch.next().await.unwrap_err(), WatchError::Closed);
}
