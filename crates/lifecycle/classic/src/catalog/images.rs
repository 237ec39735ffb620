//! Catalogs by image: got, read, looked at again, given up.
//!
//! ```text
//! CatalogSource ─► request ─► follower: find ─► new digest? ─► unpack, load ─► content
//!                                ▲                                            │
//!                                └── poll interval, or a while after a failure ┘
//! ```
//!
//! A follower belongs to one request; a CatalogSource that asks for something else gets another one,
//! and what was served goes on until that has content. As with folders, a copy on disk is served
//! after a restart as long as the image cannot be had.

use super::store::{self, CatalogStore, Serve, State};
use crate::image::{Asking, Puller};
use mainstay_api::{CatalogSource, SourceType};
use mainstay_client::Backoff;
use mainstay_formats::duration;
use mainstay_object::NamespacedName;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The interval of a poll whose own cannot be read.
const USUAL: Duration = Duration::from_mins(15);
/// No poll is closer to the one before.
const SHORTEST: Duration = Duration::from_secs(1);
/// The waits after a failure; the last is how long kubelets wait.
const AGAIN: (Duration, Duration) = (Duration::from_secs(1), Duration::from_mins(5));
/// How long an image may take before others stop waiting for its catalog.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a CatalogSource asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Request {
    image: String,
    asking: Asking,
    /// The folder of the catalog, if the image's own word does not count.
    folder: Option<String>,
    poll: Option<Duration>,
}

struct Follower {
    request: Request,
    stop: CancellationToken,
}

/// The catalogs by image that are followed.
#[derive(Default)]
pub(super) struct Followers {
    all: Mutex<BTreeMap<NamespacedName, Follower>>,
}

/// How often a CatalogSource wants to be looked at, and what is wrong with how it says so.
pub(super) fn interval(source: &CatalogSource) -> (Option<Duration>, Option<String>) {
    let poll = source.spec.update_strategy.as_ref().and_then(|it| it.registry_poll.as_ref());
    let Some(poll) = poll else { return (None, None) };
    let nanos = duration::parse_go(&poll.interval).and_then(|nanos| u64::try_from(nanos).ok());
    if let Some(nanos) = nanos {
        return (Some(Duration::from_nanos(nanos).max(SHORTEST)), None);
    }
    let text = mainstay_formats::quote(&poll.interval);
    let digits = poll.interval.bytes().all(|byte| byte.is_ascii_digit());
    let why = if digits && !poll.interval.is_empty() {
        format!("time: missing unit in duration {text}")
    } else {
        format!("time: invalid duration {text}")
    };
    let wrong = format!(
        "error parsing spec.updateStrategy.registryPoll.interval. Using the default value of 15m0s instead. Error: {why}"
    );
    (Some(USUAL), Some(wrong))
}

/// Whether a CatalogSource is served from its image.
pub(super) fn is_by_image(source: &CatalogSource) -> bool {
    let spec = &source.spec;
    matches!(spec.source_type, SourceType::Grpc)
        && spec.address.is_empty()
        && !spec.image.is_empty()
}

/// On whose behalf the images of a catalog are got.
pub(crate) fn asking(source: &CatalogSource) -> Asking {
    Asking {
        namespace: source.metadata.namespace.clone(),
        name: source.metadata.name.clone(),
        secrets: source.spec.secrets.clone(),
    }
}

impl CatalogStore {
    /// Follows the image that a CatalogSource names, if it names one, and nothing else any more.
    pub(crate) fn attend(&self, source: &CatalogSource) {
        let key = source.key();
        let Some(puller) = self.puller().filter(|_| !self.is_folder(&key)) else { return };
        if !is_by_image(source) {
            return self.leave(&key);
        }
        let config = source.spec.grpc_pod_config.as_ref();
        let request = Request {
            image: source.spec.image.clone(),
            asking: asking(source),
            folder: config
                .and_then(|it| it.extract_content.as_ref())
                .map(|it| it.catalog_dir.clone()),
            poll: interval(source).0,
        };
        let mut followers = self.followers().all.lock();
        if followers.get(&key).is_some_and(|it| it.request == request) {
            return;
        }
        let stop = self.child();
        let follower = Follower { request: request.clone(), stop: stop.clone() };
        if let Some(old) = followers.insert(key.clone(), follower) {
            old.stop.cancel();
        }
        drop(followers);
        self.begin(&key);
        let before = source.status.connection_state.as_ref().map(|it| it.address.clone());
        let store = self.clone();
        tokio::spawn(async move {
            let run = Box::pin(store.run_image(&key, &puller, &request, before));
            stop.run_until_cancelled(run).await;
        });
    }

    /// Forgets a catalog by image: its CatalogSource is gone, or names something else.
    pub(crate) fn leave(&self, key: &NamespacedName) {
        let Some(follower) = self.followers().all.lock().remove(key) else { return };
        follower.stop.cancel();
        self.forget(key);
        if let Some(serve) = self.serve() {
            serve.close(key);
        }
        if let Some(copy) = self.copy_of(key) {
            for file in [name_of(&copy), copy] {
                // What is not there is gone as well.
                let _ = std::fs::remove_file(file);
            }
        }
    }

    async fn run_image(
        &self,
        key: &NamespacedName,
        puller: &Puller,
        request: &Request,
        before: Option<String>,
    ) {
        if let Some(serve) = self.serve() {
            let served = serve.open(key, before.as_deref()).await;
            self.serve_at(key, served);
        }
        let mut backoff = Backoff::new(AGAIN.0, AGAIN.1);
        let mut digest = None;
        loop {
            let mut loading = std::pin::pin!(self.load_image(key, puller, request, digest.clone()));
            let in_time = tokio::time::timeout(PATIENCE, &mut loading).await;
            let loaded = if let Ok(loaded) = in_time {
                loaded
            } else {
                self.delayed(key, &request.image);
                loading.await
            };
            let wait = if let Some(found) = loaded {
                digest = Some(found);
                backoff.reset();
                request.poll
            } else {
                Some(backoff.fail())
            };
            match wait {
                Some(wait) => tokio::time::sleep(wait).await,
                None => return,
            }
        }
    }

    /// Looks at the image once; what it is now, if it can be had and read.
    async fn load_image(
        &self,
        key: &NamespacedName,
        puller: &Puller,
        request: &Request,
        before: Option<String>,
    ) -> Option<String> {
        let found = puller.find(&request.image, &request.asking).await;
        let polled = request.poll.map(|_| self.now());
        let digest = found.as_ref().ok().map(|it| it.digest.clone());
        if digest.is_some() && digest == before {
            let same = State { polled, ..State::default() };
            self.take(key, same, None);
            return digest;
        }
        let (puller, image, folder) =
            (puller.clone(), request.image.clone(), request.folder.clone());
        let copy = self.copy_of(key);
        let first = self.state(key).is_none_or(|it| it.content.is_none());
        let modified = self.modified(key);
        let name = key.clone();
        let loaded = tokio::task::spawn_blocking(move || {
            let catalog = found.and_then(|found| {
                puller.catalog(&found, folder.as_deref()).map_err(|why| format!("{image}: {why}"))
            });
            match catalog {
                Ok(catalog) => {
                    if let Some(copy) = &copy {
                        keep(&name, &image, copy, || store::keep(&name, &catalog, copy));
                    }
                    let content = store::content(catalog, modified);
                    content.index.warm();
                    State { content: Some(content), ..State::default() }
                }
                Err(failure) => {
                    let kept = copy.filter(|copy| first && is_of(copy, &image));
                    let content = kept.and_then(|copy| store::kept(&name, &copy, modified));
                    State { content, failure: Some(failure), ..State::default() }
                }
            }
        });
        let state = loaded.await.unwrap_or_else(|error| State {
            failure: Some(format!("loading the catalog ended unexpectedly: {error}")),
            ..State::default()
        });
        let good = state.failure.is_none();
        self.take(key, State { polled, ..state }, None);
        digest.filter(|_| good)
    }

    /// Says that an image takes long, so that nobody waits for its catalog any more.
    fn delayed(&self, key: &NamespacedName, image: &str) {
        if self.state(key).is_some_and(|it| it.is_loading()) {
            let failure = Some(format!("the image {image} is still being pulled"));
            self.take(key, State { failure, ..State::default() }, None);
        }
    }

    fn serve(&self) -> Option<Arc<dyn Serve>> {
        self.places()
    }
}

/// The file that says which image a copy is of.
fn name_of(copy: &Path) -> std::path::PathBuf {
    copy.with_extension("image")
}

/// Keeps a copy of an image's catalog: first its name goes, so that no copy is taken for another's.
fn keep(key: &NamespacedName, image: &str, copy: &Path, write: impl FnOnce()) {
    let name = name_of(copy);
    let _ = std::fs::remove_file(&name);
    write();
    if let Err(error) = std::fs::write(&name, image) {
        tracing::warn!(catalog = %key, %error, "the content is not kept for a restart");
    }
}

fn is_of(copy: &Path, image: &str) -> bool {
    std::fs::read_to_string(name_of(copy)).is_ok_and(|name| name == image)
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_api::{RegistryPoll, UpdateStrategy};

    #[test]
    fn intervals_are_read_as_go_writes_them_and_what_is_none_is_told() {
        let error = "error parsing spec.updateStrategy.registryPoll.interval. Using the default value of 15m0s instead. Error: time: ";
        for (text, wanted, why) in [
            ("30m0s", Duration::from_mins(30), None),
            ("1ms", SHORTEST, None),
            ("often", USUAL, Some("invalid duration \"often\"")),
            ("10", USUAL, Some("missing unit in duration \"10\"")),
            ("-1s", USUAL, Some("invalid duration \"-1s\"")),
        ] {
            let mut source = CatalogSource::new("ns", "cat");
            let poll = RegistryPoll { interval: text.to_owned() };
            let strategy = UpdateStrategy { registry_poll: Some(poll) };
            source.spec.update_strategy = Some(strategy);
            let why = why.map(|why| format!("{error}{why}"));
            assert_eq!(interval(&source), (Some(wanted), why), "{text}");
        }
        assert_eq!(interval(&CatalogSource::new("ns", "cat")), (None, None));
    }
}
