//! Consistency of lists and watches: the events of a watch, applied to a list, result in a later
//! list. The writes, selectors, starts and forms of watches are random.

use crate::harness::{Api, Events, MAPS, config_map, map};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// Objects by name.
type State = BTreeMap<String, Value>;

/// A write to one of a few objects.
#[derive(Clone, Debug)]
enum Write {
    /// Creates the object, or replaces it if it exists.
    Put {
        name: usize,
        label: Option<usize>,
        data: u8,
    },
    Delete(usize),
}

/// A watch with or without a selector, and its start.
#[derive(Clone, Debug)]
struct WatchSpec {
    /// The number of the write before which it begins.
    at: usize,
    /// The number of writes between its list and its start.
    lag: usize,
    selector: usize,
    mode: WatchMode,
}

#[derive(Clone, Copy, Debug)]
enum WatchMode {
    /// From the revision of a list.
    List,
    /// With the existing objects as its first events, up to a bookmark.
    Streaming,
    /// With the existing objects as its first events, without a bookmark.
    Plain,
}

const NAMES: usize = 4;
const LABELS: [&str; 3] = ["x", "y", "z"];
const SELECTORS: [&str; 5] = [
    "",
    "labelSelector=l%3Dx",
    "labelSelector=l+in+(x,y)",
    "labelSelector=!l",
    "fieldSelector=metadata.name%3Dm1",
];

fn name(index: usize) -> String {
    format!("m{index}")
}

async fn write(api: &Api, write: &Write) {
    match write {
        Write::Put { name: index, label, data } => {
            let mut body = config_map(&name(*index));
            body["data"] = json!({"k": data.to_string()});
            if let Some(label) = label {
                body["metadata"]["labels"] = json!({"l": LABELS[*label]});
            }
            if api.post(MAPS, &body).await.code == 409 {
                api.put(&map(&name(*index)), &body).await.ok();
            }
        }
        Write::Delete(index) => {
            let code = api.delete(&map(&name(*index)), &Value::Null).await.code;
            assert!(matches!(code, 200 | 404), "{code}");
        }
    }
}

/// The objects of a list, and its revision.
async fn list(api: &Api, query: &str) -> (State, String) {
    let list = api.get(&format!("{MAPS}?{query}")).await.ok();
    let mut state = State::new();
    for item in list["items"].as_array().unwrap() {
        let mut item = item.clone();
        // Objects of events have a kind, items of lists do not.
        item["apiVersion"] = "v1".into();
        item["kind"] = "ConfigMap".into();
        state.insert(item["metadata"]["name"].as_str().unwrap().to_owned(), item);
    }
    (state, list["metadata"]["resourceVersion"].as_str().unwrap().to_owned())
}

/// A running watch, and the state of its reader.
struct WatchReader {
    events: Events,
    selector: usize,
    state: State,
    /// Objects with this revision or an older one exist at the start.
    start: u64,
    begin: WatchSpec,
}

impl WatchReader {
    /// Begins a watch. `history` has the lists of each selector before each write.
    async fn begin(api: &Api, begin: &WatchSpec, history: &[Vec<(State, String)>]) -> Self {
        let (mut state, mut start) = (State::new(), api.store.revision());
        let query = match begin.mode {
            WatchMode::List => {
                let at = (history.len() - 1).saturating_sub(begin.lag);
                let (listed, revision) = &history[at][begin.selector];
                state.clone_from(listed);
                start = revision.parse().unwrap();
                format!("&resourceVersion={revision}")
            }
            WatchMode::Streaming => "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan\
                               &allowWatchBookmarks=true"
                .to_owned(),
            WatchMode::Plain => String::new(),
        };
        let selector = SELECTORS[begin.selector];
        let events = api.watch(&format!("{MAPS}?watch=true&{selector}{query}")).await;
        Self { events, selector: begin.selector, state, start, begin: begin.clone() }
    }

    /// Replays the events up to the end of the watch. Each must fit the previous state.
    async fn replay(mut self) -> State {
        let mut revision = self.start;
        loop {
            let next = tokio::time::timeout(Duration::from_secs(10), self.events.next()).await;
            let Some(event) = next.expect("an event or the end") else { return self.state };
            let (kind, object) = (event["type"].as_str().unwrap(), &event["object"]);
            let version: u64 =
                object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
            let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            match kind {
                "BOOKMARK" => {
                    assert!(version >= revision, "{:?}: a bookmark goes back", self.begin);
                    revision = version;
                    continue;
                }
                "ADDED" if version <= self.start => {
                    assert!(!matches!(self.begin.mode, WatchMode::List), "{:?}: known", self.begin);
                }
                _ => {
                    assert!(
                        version > revision,
                        "{:?}: {kind} {version} after {revision}",
                        self.begin
                    );
                    revision = version;
                }
            }
            let before = if kind == "DELETED" {
                self.state.remove(&name)
            } else {
                self.state.insert(name.clone(), object.clone())
            };
            assert_eq!(before.is_none(), kind == "ADDED", "{:?}: {kind} {name}", self.begin);
        }
    }
}

async fn check_replay(writes: &[Write], specs: &[WatchSpec]) {
    let api = Api::new().await;
    let mut history: Vec<Vec<(State, String)>> = Vec::new();
    let mut readers = Vec::new();
    for at in 0..=writes.len() {
        let mut lists = Vec::new();
        for selector in SELECTORS {
            lists.push(list(&api, selector).await);
        }
        history.push(lists);
        for begin in specs.iter().filter(|begin| begin.at.min(writes.len()) == at) {
            readers.push(WatchReader::begin(&api, begin, &history).await);
        }
        if let Some(entry) = writes.get(at) {
            write(&api, entry).await;
        }
    }
    // Watches end after their last event.
    api.store.close().await.unwrap();
    let last = &history[writes.len()];
    for reader in readers {
        let (begin, selector) = (reader.begin.clone(), reader.selector);
        assert_eq!(reader.replay().await, last[selector].0, "{begin:?}");
    }
}

fn arbitrary_write() -> impl Strategy<Value = Write> {
    prop_oneof![
        3 => (0..NAMES, proptest::option::of(0..LABELS.len()), 0..3_u8)
            .prop_map(|(name, label, data)| Write::Put { name, label, data }),
        1 => (0..NAMES).prop_map(Write::Delete),
    ]
}

fn arbitrary_watch() -> impl Strategy<Value = WatchSpec> {
    let mode = prop_oneof![
        3 => Just(WatchMode::List),
        1 => Just(WatchMode::Streaming),
        1 => Just(WatchMode::Plain),
    ];
    (0..24_usize, 0..12_usize, 0..SELECTORS.len(), mode)
        .prop_map(|(at, lag, selector, mode)| WatchSpec { at, lag, selector, mode })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn watch_events_applied_to_a_list_result_in_the_later_list(
        writes in proptest::collection::vec(arbitrary_write(), 1..24),
        specs in proptest::collection::vec(arbitrary_watch(), 1..12),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(check_replay(&writes, &specs));
    }
}
