//! A list and the watch that follows it are one story: whoever replays the events over the list has
//! what a later list shows. For random writes, selectors, beginnings and forms of watches.

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
    /// Creates it, or replaces it if it is there.
    Put {
        name: usize,
        label: Option<usize>,
        data: u8,
    },
    Delete(usize),
}

/// A watch of all or of a selection, and how it is asked for.
#[derive(Clone, Debug)]
struct Begin {
    /// Before which write.
    at: usize,
    /// Behind how many writes it begins.
    behind: usize,
    selector: usize,
    how: How,
}

#[derive(Clone, Copy, Debug)]
enum How {
    /// From the revision of a list.
    List,
    /// With what there is as its first events, up to a bookmark.
    Streaming,
    /// With what there is as its first events, without an end of them.
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

/// What a list shows, and its revision.
async fn list(api: &Api, query: &str) -> (State, String) {
    let list = api.get(&format!("{MAPS}?{query}")).await.ok();
    let mut state = State::new();
    for item in list["items"].as_array().unwrap() {
        let mut item = item.clone();
        // Events say it, items of lists do not.
        item["apiVersion"] = "v1".into();
        item["kind"] = "ConfigMap".into();
        state.insert(item["metadata"]["name"].as_str().unwrap().to_owned(), item);
    }
    (state, list["metadata"]["resourceVersion"].as_str().unwrap().to_owned())
}

/// A watch under way, and what its reader knows.
struct Reader {
    events: Events,
    selector: usize,
    state: State,
    /// What has this revision or an older one is there at the start.
    start: u64,
    begin: Begin,
}

impl Reader {
    /// Begins a watch. `history` has what lists of each selector showed before each write.
    async fn begin(api: &Api, begin: &Begin, history: &[Vec<(State, String)>]) -> Self {
        let (mut state, mut start) = (State::new(), api.store.revision());
        let query = match begin.how {
            How::List => {
                let at = (history.len() - 1).saturating_sub(begin.behind);
                let (listed, revision) = &history[at][begin.selector];
                state.clone_from(listed);
                start = revision.parse().unwrap();
                format!("&resourceVersion={revision}")
            }
            How::Streaming => "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan\
                               &allowWatchBookmarks=true"
                .to_owned(),
            How::Plain => String::new(),
        };
        let selector = SELECTORS[begin.selector];
        let events = api.watch(&format!("{MAPS}?watch=true&{selector}{query}")).await;
        Self { events, selector: begin.selector, state, start, begin: begin.clone() }
    }

    /// Replays the events up to the end of the watch. Every one must fit what came before.
    async fn replay(mut self) -> State {
        let mut seen = self.start;
        loop {
            let next = tokio::time::timeout(Duration::from_secs(10), self.events.next()).await;
            let Some(event) = next.expect("an event or the end") else { return self.state };
            let (kind, object) = (event["type"].as_str().unwrap(), &event["object"]);
            let version: u64 =
                object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
            let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            match kind {
                "BOOKMARK" => {
                    assert!(version >= seen, "{:?}: a bookmark goes back", self.begin);
                    seen = version;
                    continue;
                }
                "ADDED" if version <= self.start => {
                    assert!(!matches!(self.begin.how, How::List), "{:?}: known", self.begin);
                }
                _ => {
                    assert!(version > seen, "{:?}: {kind} {version} after {seen}", self.begin);
                    seen = version;
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

async fn tell(writes: &[Write], begins: &[Begin]) {
    let api = Api::new().await;
    let mut history: Vec<Vec<(State, String)>> = Vec::new();
    let mut readers = Vec::new();
    for at in 0..=writes.len() {
        let mut lists = Vec::new();
        for selector in SELECTORS {
            lists.push(list(&api, selector).await);
        }
        history.push(lists);
        for begin in begins.iter().filter(|begin| begin.at.min(writes.len()) == at) {
            readers.push(Reader::begin(&api, begin, &history).await);
        }
        if let Some(one) = writes.get(at) {
            write(&api, one).await;
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

fn some_write() -> impl Strategy<Value = Write> {
    prop_oneof![
        3 => (0..NAMES, proptest::option::of(0..LABELS.len()), 0..3_u8)
            .prop_map(|(name, label, data)| Write::Put { name, label, data }),
        1 => (0..NAMES).prop_map(Write::Delete),
    ]
}

fn some_begin() -> impl Strategy<Value = Begin> {
    let how = prop_oneof![
        3 => Just(How::List),
        1 => Just(How::Streaming),
        1 => Just(How::Plain),
    ];
    (0..24_usize, 0..12_usize, 0..SELECTORS.len(), how)
        .prop_map(|(at, behind, selector, how)| Begin { at, behind, selector, how })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn events_over_a_list_are_the_later_list(
        writes in proptest::collection::vec(some_write(), 1..24),
        begins in proptest::collection::vec(some_begin(), 1..12),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(tell(&writes, &begins));
    }
}
