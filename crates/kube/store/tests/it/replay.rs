//! For any sequence of changes: the replayed watch log equals the list, from any start.

use crate::support::*;
use mainstay_store::{EventKind, Key, Precondition, Store};
use proptest::prelude::*;
use std::collections::BTreeMap;

type State = BTreeMap<Key, String>;

#[derive(Clone, Debug)]
enum Step {
    Put {
        namespace: u8,
        name: u8,
        text: u8,
    },
    Delete {
        namespace: u8,
        name: u8,
    },
    /// Only on disk: close and open again, or just drop.
    Restart {
        close: bool,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..3_u8, 0..4_u8, any::<u8>())
            .prop_map(|(namespace, name, text)| Step::Put { namespace, name, text }),
        3 => (0..3_u8, 0..4_u8).prop_map(|(namespace, name)| Step::Delete { namespace, name }),
        1 => any::<bool>().prop_map(|close| Step::Restart { close }),
    ];
    prop::collection::vec(step, 1..60)
}

fn list_state(store: &Store, revision: u64) -> Option<State> {
    let list = store.list_at(MAPS, None, revision).ok()?;
    Some(list.iter().map(|stored| (stored.key.clone(), text_of(stored))).collect())
}

fn text_of(stored: &mainstay_store::Stored) -> String {
    stored.label("text").unwrap_or_default().to_owned()
}

/// Runs the steps and returns the state at every revision from 1 on.
async fn run(
    mut store: Store,
    steps: &[Step],
    folder: Option<&std::path::Path>,
) -> (Store, Vec<State>) {
    let mut states = vec![State::new(), State::new()];
    for step in steps {
        let mut state = states.last().cloned().unwrap_or_default();
        let at = |namespace: u8, name: u8| (format!("ns{namespace}"), format!("n{name}"));
        let changed = match *step {
            Step::Put { namespace, name, text } => {
                let (namespace, name) = at(namespace, name);
                let text = format!("t{text}");
                put(&store, (&namespace, &name), &text, Precondition::Any).await.unwrap();
                state.insert(key(&namespace, &name), text.clone()) != Some(text)
            }
            Step::Delete { namespace, name } => {
                let (namespace, name) = at(namespace, name);
                let existed = state.remove(&key(&namespace, &name)).is_some();
                let result = delete(&store, (&namespace, &name), Precondition::Any).await;
                assert_eq!(result.is_ok(), existed);
                existed
            }
            Step::Restart { close } => {
                if let Some(folder) = folder {
                    if close {
                        store.close().await.unwrap();
                    }
                    drop(store);
                    store = on_disk(folder);
                }
                false
            }
        };
        if changed {
            states.push(state);
        }
        assert_eq!(store.revision(), states.len() as u64 - 1);
    }
    (store, states)
}

/// Checks every past view that the store still returns; returns the oldest one.
fn check(store: &Store, states: &[State]) -> usize {
    let newest = states.len() - 1;
    let mut oldest = newest;
    for (at, before) in states.iter().enumerate().skip(1) {
        let revision = at as u64;
        let Ok(mut watch) = store.watch(MAPS, revision) else {
            assert!(list_state(store, revision).is_none());
            continue;
        };
        oldest = oldest.min(at);
        assert_eq!(list_state(store, revision).as_ref(), Some(before));
        let mut replayed = before.clone();
        while let Some(event) = watch.try_next().unwrap() {
            let (key, text) = (event.object.key.clone(), text_of(&event.object));
            let previous = event.previous.as_ref().map(|stored| text_of(stored));
            let replaced = match event.kind {
                EventKind::Deleted => replayed.remove(&key),
                EventKind::Added | EventKind::Modified => replayed.insert(key, text),
            };
            assert_eq!(replaced, previous);
            let after = usize::try_from(event.revision).unwrap();
            assert_eq!(replayed, states[after]);
        }
        assert_eq!(replayed, states[newest]);
        assert_eq!(watch.position(), newest as u64);
    }
    assert_eq!(list_state(store, newest as u64).as_ref(), states.last());
    oldest
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_watch_log_replayed_is_the_list(steps in steps()) {
        runtime().block_on(async {
            let (store, states) = run(in_memory(), &steps, None).await;
            assert_eq!(check(&store, &states), 1, "nothing is forgotten yet");
        });
    }

    #[test]
    fn restarts_only_shorten_the_history(steps in steps()) {
        let folder = tempfile::tempdir().unwrap();
        runtime().block_on(async {
            let store = on_disk(folder.path());
            let (store, states) = run(store, &steps, Some(folder.path())).await;
            check(&store, &states);
        });
    }
}
