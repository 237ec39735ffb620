//! One change that many watches see.
//!
//! Watches are opened in two ways. Go's clients, and with them almost all programs that watch,
//! share a connection among a hundred of them; other clients, and a thousand separate programs, have
//! one each. With connections apart the client's own share of the work, decrypting each of them, is
//! most of what is measured.

use crate::api::{Api, REPEATS, collection, maps};
use crate::multiplex::{STREAMS, Stream};
use crate::process::Usage;
use anyhow::{Context, Result};
use futures::io::AsyncBufReadExt;
use futures::stream::{self, StreamExt, TryStreamExt};
use kube::api::{ListParams, Patch, PatchParams, WatchParams};
use serde_json::{Value, json};
use std::fmt;
use std::time::Duration;
use tokio::sync::mpsc;

/// How long one change may take to reach all watches.
const PATIENCE: Duration = Duration::from_secs(30);

/// How watches reach the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// As streams of HTTP/2, a hundred on a connection.
    Multiplexed,
    /// Each on a connection of its own, in HTTP/1.1.
    Apart,
}

impl Way {
    /// By which its figures are found.
    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::Multiplexed => "watches-http2",
            Self::Apart => "watches-apart",
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Multiplexed => "HTTP/2",
            Self::Apart => "a connection each",
        })
    }
}

/// Who listens, and to whom it is told when.
struct Ear {
    told: mpsc::UnboundedSender<Duration>,
    clock: mainstay_clock::Clock,
}

impl Ear {
    /// Notes that a watch has heard something; false when nobody wants to know any more.
    fn hears(&self) -> bool {
        self.told.send(self.clock.elapsed()).is_ok()
    }
}

/// Opens watches, changes one object several times, and gives for each change the sorted times until
/// every watch was told; and what `usage` says while they are open.
pub(crate) async fn measure(
    api: &Api,
    way: Way,
    watches: usize,
    usage: impl Fn() -> Result<Usage>,
) -> Result<(Vec<Vec<Duration>>, Usage)> {
    let head = maps().list(&ListParams::default().limit(1))?;
    let head: Value = serde_json::from_str(&api.client.request_text(head).await?)?;
    let version = head.pointer("/metadata/resourceVersion").and_then(Value::as_str);
    let version = version.context("the list says no resourceVersion")?;
    let (told, mut hear) = mpsc::unbounded_channel();
    let ear = || Ear { told: told.clone(), clock: api.clock };
    match way {
        Way::Multiplexed => multiplexed(api, watches, version, ear).await?,
        Way::Apart => apart(api, watches, version, ear).await?,
    }
    let usage = usage()?;
    let mut changes = Vec::with_capacity(REPEATS);
    for change in 0..REPEATS {
        let patch = Patch::Merge(json!({"data": {"changed": format!("{way} {change}")}}));
        let request = maps().patch("object-000000", &PatchParams::default(), &patch)?;
        let start = api.clock.elapsed();
        api.client.request_text(request).await.context("changing one config map")?;
        let mut samples = Vec::with_capacity(watches);
        while samples.len() < watches {
            let told = tokio::time::timeout(PATIENCE, hear.recv()).await;
            let told = told.context("a watch is silent")?.context("all watches ended")?;
            samples.push(told.saturating_sub(start));
        }
        samples.sort_unstable();
        changes.push(samples);
    }
    Ok((changes, usage))
}

async fn multiplexed(
    api: &Api,
    watches: usize,
    version: &str,
    ear: impl Fn() -> Ear,
) -> Result<()> {
    let path = format!("{}?watch=true&timeoutSeconds=290&resourceVersion={version}", collection());
    let mut left = watches;
    while left > 0 {
        let mut connection = api.connector.connect().await?;
        for _ in 0..left.min(STREAMS) {
            let (stream, ear) = (connection.open(&path).await?, ear());
            tokio::spawn(listen(stream, ear));
        }
        left = left.saturating_sub(STREAMS);
    }
    Ok(())
}

/// Ends with the watch, or when nobody wants to know any more.
async fn listen(mut stream: Stream, ear: Ear) {
    while stream.line().await && ear.hears() {}
}

async fn apart(api: &Api, watches: usize, version: &str, ear: impl Fn() -> Ear) -> Result<()> {
    let watching = WatchParams::default().timeout(290).disable_bookmarks();
    let open: Vec<_> = stream::iter(0..watches)
        .map(|_| async {
            let request = maps().watch(&watching, version)?;
            api.client.request_stream(request).await.context("opening a watch")
        })
        .buffer_unordered(64)
        .try_collect()
        .await?;
    for stream in open {
        let ear = ear();
        tokio::spawn(async move {
            let mut stream = std::pin::pin!(stream);
            let mut line = Vec::new();
            // Ends with the watch, or when nobody wants to know any more.
            while stream.read_until(b'\n', &mut line).await.is_ok_and(|count| count > 0) {
                line.clear();
                if !ear.hears() {
                    break;
                }
            }
        });
    }
    Ok(())
}
