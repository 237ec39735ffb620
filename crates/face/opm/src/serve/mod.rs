//! `opm serve`: a catalog behind the registry API, and behind the HTTP catalog API on the same port.
//!
//! ```text
//! listen ─► read the folder (answers say "not yet") ─► judge ─► serve ─► read again on change …
//!                                                         └► fatal, and the reason in the
//!                                                            termination log
//! ```
//!
//! There is no cache to build: content is served from memory, half a second after the start. The
//! flags about caches stay, because image builds and pods pass them; what they mean is [`cache`]'s.

pub(super) mod address;
mod cache;
mod error;
mod last;
mod refuse;

use super::call::{Call, End, Io};
use super::command::{Action, Arguments, Command};
use super::flags::Flag;
use super::voice::{self, Level};
use cache::CacheError;
pub(super) use error::ServeError;
pub(super) use last::LastWords;
use mainstay_catalog::{Catalog, LoadOptions};
use mainstay_registry::http::CatalogHttpApi;
use mainstay_registry::reload::{CatalogValidator, FolderSource, Refusal, ReloadOutcome, follow};
use mainstay_registry::server::{self, AccessListener, Limits};
use mainstay_registry::{ServedCatalogs, grpc};
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Where a pod tells why it ended.
pub(super) const TERMINATION_LOG: &str = "/dev/termination-log";

/// The command.
pub(super) fn command() -> Command {
    Command {
        long: "Serves the file-based catalog in a folder: the registry API over gRPC and, on the same\n\
               port, the HTTP catalog API under /catalogs/NAME, where NAME is the folder's.\n\n\
               The port is open at once; health says NOT_SERVING until the catalog is loaded. When\n\
               files change, they are read again: good content is served from then on, of bad content\n\
               every problem is logged, and what was served before stays.\n\n\
               No cache is needed. --cache-dir names a folder whose digest tells, at the start, whether\n\
               the catalog is still the one that --cache-only saw; only --cache-only writes there,\n\
               nothing but the digest, and a cache that another opm built is left alone and not used.\n\
               The flags about pprof are accepted and start nothing.",
        arguments: Arguments::Exactly(1),
        flags: vec![
            Flag::text("cache-dir", None, "folder that keeps the digest of the catalog"),
            Flag::switch(
                "cache-enforce-integrity",
                "end with an error if the catalog is not the one of --cache-dir (default: true with --cache-dir and without --cache-only)",
            ),
            Flag::switch(
                "cache-only",
                "judge the catalog, write its digest to --cache-dir, and end",
            ),
            Flag::switch("debug", "log more, such as every call"),
            Flag::text("port", Some('p'), "port to serve on").or("50051"),
            Flag::text("pprof-addr", None, "accepted and checked, nothing listens there")
                .or("localhost:6060"),
            Flag::switch("pprof-capture-profiles", "accepted, nothing is captured"),
            Flag::text("termination-log", Some('t'), "file that gets the reason of a failure")
                .or(TERMINATION_LOG),
        ],
        action: Some(Action::Async(|call| Box::pin(run(call)))),
        ..Command::new("serve <source_path>", "Serve a file-based catalog")
    }
}

/// What is to be done, after the first checks.
struct Settings {
    /// The catalog, as it was typed.
    typed: String,
    folder: PathBuf,
    cache: Option<cache::Folder>,
    enforce: bool,
    cache_only: bool,
    port: String,
    debug: bool,
}

async fn run(call: &mut Call<'_, '_>) -> Result<(), End> {
    let typed = call.flags.text("termination-log").to_owned();
    // Only a pod has the default place: nobody else shall find a new file in /dev.
    let must_exist = typed == TERMINATION_LOG;
    let (last, trouble) = LastWords::open(&call.io.at(&typed), must_exist);
    let result = begin(call, trouble.map(|why| format!("open {typed}: {why}"))).await;
    result.map_err(|error| {
        let reason = error.to_string();
        last.say(&reason);
        End::Fatal(reason)
    })
}

/// Checks what was asked for and does it. `trouble` is what is wrong with the termination log.
async fn begin(call: &mut Call<'_, '_>, trouble: Option<String>) -> Result<(), ServeError> {
    address::check(call.flags.text("pprof-addr")).map_err(ServeError::Profiles)?;
    if let Some(why) = trouble {
        let text = "unable to set termination log path";
        voice::log(call.io, Level::Warning, text, &[("error", &why)]);
    }
    let settings = settings(call)?;
    serve(call.io, &settings).await
}

fn settings(call: &Call<'_, '_>) -> Result<Settings, ServeError> {
    let (flags, io) = (&call.flags, &call.io);
    let cache_dir = flags.text("cache-dir");
    let cache_only = flags.is_on("cache-only");
    let enforce = if flags.has("cache-enforce-integrity") {
        flags.is_on("cache-enforce-integrity")
    } else {
        !cache_dir.is_empty() && !cache_only
    };
    if cache_dir.is_empty() && enforce {
        return Err(ServeError::NoCacheDir);
    }
    let cache = if cache_dir.is_empty() {
        None
    } else {
        Some(cache::Folder::find(&io.at(cache_dir), cache_dir)?)
    };
    let typed = call.argument(0).to_owned();
    Ok(Settings {
        folder: io.at(&typed),
        typed,
        cache,
        enforce,
        cache_only,
        port: flags.text("port").to_owned(),
        debug: flags.is_on("debug"),
    })
}

/// Serves the catalog, or writes what the cache keeps of it.
async fn serve(io: &mut Io<'_>, settings: &Settings) -> Result<(), ServeError> {
    if settings.enforce
        && let Some(cache) = &settings.cache
    {
        cache.kept_digest().map_err(ServeError::Integrity)?;
    }
    if settings.cache_only {
        let catalog = Catalog::load(&settings.folder, &LoadOptions::default());
        let catalog = match catalog {
            Ok(catalog) => catalog,
            Err(error) => return Err(settings.refusal(io, &refuse::broken(settings, error))),
        };
        settings.judge()(&catalog).map_err(|error| settings.refusal(io, &*error))?;
        return match settings.cache.as_ref().filter(|_| !settings.enforce) {
            Some(cache) => cache.write(&catalog).map_err(|error| settings.refusal(io, &error)),
            None => Ok(()),
        };
    }
    listen(io, settings).await
}

impl Settings {
    /// What upstream says when a catalog cannot be served, which depends on what it looks at first.
    fn refusal(&self, io: &Io<'_>, error: &(dyn Error + 'static)) -> ServeError {
        let why = io.as_typed(&error.to_string(), &self.typed);
        let of_digest = matches!(
            refuse::cache_error(error),
            Some(CacheError::Stale { .. } | CacheError::NoDigest(_))
        );
        let said = match (self.enforce, of_digest) {
            (true, true) => format!("integrity check failed: {why}"),
            (true, false) => format!("integrity check failed: compute digest: {why}"),
            (false, _) => {
                format!("failed to load or rebuild cache: failed to rebuild cache: {why}")
            }
        };
        ServeError::Refused { said }
    }

    /// Says whether a sound catalog is one to begin with here.
    fn judge(&self) -> CatalogValidator {
        let cache = self.cache.clone().filter(|_| self.enforce);
        Arc::new(move |catalog| {
            if let Some(cache) = &cache {
                cache.check(catalog.blobs())?;
            }
            servable(catalog)
        })
    }

    /// The name of the catalog in addresses: the folder's, as far as it can stand there.
    fn name(&self) -> String {
        let folder = std::path::absolute(&self.folder).unwrap_or_else(|_| self.folder.clone());
        let folder = folder.canonicalize().unwrap_or(folder);
        let name = folder.file_name().map(|name| name.to_string_lossy().to_lowercase());
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '.' { c } else { '-' };
        let name: String = name.unwrap_or_default().chars().map(plain).take(63).collect();
        let name = name.trim_matches(['-', '.']);
        let usable = mainstay_formats::names::dns1123_subdomain(name).is_empty();
        if usable { name.to_owned() } else { "catalog".to_owned() }
    }
}

/// Whether upstream would serve a sound catalog.
fn servable(catalog: &Catalog) -> Result<(), Refusal> {
    let refusal = mainstay_registry::unserved_reason(catalog);
    refusal.map_or(Ok(()), |said| Err(refuse::NotServed { said }.into()))
}

/// What happens while a catalog is served.
enum News {
    Read(ReloadOutcome),
    Unseen(String),
    Answered(String),
}

async fn listen(io: &mut Io<'_>, settings: &Settings) -> Result<(), ServeError> {
    let signals = |kind| signal(kind).map_err(ServeError::Signals);
    let mut interrupt = signals(SignalKind::interrupt())?;
    let mut terminate = signals(SignalKind::terminate())?;
    let shelf = Arc::new(ServedCatalogs::default());
    let served = shelf.add(&settings.name());
    let (tell, mut news) = mpsc::channel(256);
    let stop = CancellationToken::new();

    // Upstream reads first and listens then: a catalog that is bad is told before a port that is.
    let listener = address::listen(&settings.port).await;
    let (port, mut serving) = match listener {
        Ok(listener) => {
            let port =
                listener.local_addr().map(|address| address.port().to_string()).unwrap_or_default();
            let task = tokio::spawn(server::serve(
                listener,
                CatalogHttpApi::new(Arc::clone(&shelf)),
                grpc::service_until(Arc::clone(&served), stop.clone()),
                Limits::default(),
                settings.debug.then(|| hear(tell.clone())),
                stop.clone(),
            ));
            (Ok(port), Some(task))
        }
        Err(error) => (Err(ServeError::Listen(error)), None),
    };

    let later = FolderSource {
        folder: settings.folder.clone(),
        options: LoadOptions::default(),
        clock: io.clock,
        judge: Arc::new(servable),
    };
    // Only what is begun with must be what the cache folder knows.
    let begin = FolderSource { judge: settings.judge(), ..later.clone() };
    let unseen = |why: &str| drop(tell.try_send(News::Unseen(why.to_owned())));
    let load = || async {
        let source = if served.index().is_none() { &begin } else { &later };
        let outcome = source.load(&served).await;
        // Nobody hears it when the program ends.
        let _ = tell.send(News::Read(outcome)).await;
    };
    let mut following = Box::pin(follow(&settings.folder, io.clock, unseen, load));
    // What became of listening; none once it is served.
    let (mut followed, mut port) = (true, Some(port));
    loop {
        let heard = tokio::select! {
            () = &mut following, if followed => { followed = false; continue; }
            Some(heard) = news.recv() => heard,
            error = ended(&mut serving) => return Err(error),
            _ = interrupt.recv() => break,
            _ = terminate.recv() => break,
        };
        match heard {
            News::Read(outcome) => match port.take() {
                Some(port) => {
                    first(io, settings, outcome)?;
                    let fields = [("configs", settings.typed.as_str()), ("port", &*port?)];
                    voice::log(io, Level::Info, "serving registry", &fields);
                }
                None => again(io, settings, &outcome),
            },
            News::Unseen(why) => {
                let fields = [("configs", settings.typed.as_str()), ("error", &why)];
                voice::log(io, Level::Warning, "changes of the catalog are noticed late", &fields);
            }
            News::Answered(what) => voice::log(io, Level::Debug, &what, &[]),
        }
    }
    voice::log(io, Level::Info, "shutting down server", &[("configs", &settings.typed)]);
    stop.cancel();
    if let Some(serving) = serving {
        // If it panicked, it has ended as well.
        let _ = serving.await;
    }
    Ok(())
}

/// Waits until a port, if there is one, serves no longer, which it does not do by itself.
async fn ended(serving: &mut Option<JoinHandle<()>>) -> ServeError {
    let Some(task) = serving else { return std::future::pending().await };
    ServeError::Ended(task.await.err())
}

/// Tells of every answer; what nobody has time to hear is not told.
fn hear(tell: mpsc::Sender<News>) -> AccessListener {
    Arc::new(move |answer| {
        let line = format!(
            "{} {} {} for {}",
            answer.method,
            answer.uri,
            answer.status.as_u16(),
            answer.peer
        );
        let _ = tell.try_send(News::Answered(line));
    })
}

/// What was read first decides whether there is anything to serve.
fn first(io: &Io<'_>, settings: &Settings, outcome: ReloadOutcome) -> Result<(), ServeError> {
    match outcome {
        ReloadOutcome::New(_) | ReloadOutcome::Same(_) => Ok(()),
        ReloadOutcome::Bad(error) => Err(settings.refusal(io, &refuse::broken(settings, error))),
        ReloadOutcome::Refused(error) => Err(settings.refusal(io, &*error)),
        ReloadOutcome::Lost(reason) => Err(ServeError::Unread { reason }),
    }
}

/// What is read later is served if it is good, and told if it is not.
fn again(io: &mut Io<'_>, settings: &Settings, outcome: &ReloadOutcome) {
    let configs = ("configs", settings.typed.as_str());
    let why = match outcome {
        ReloadOutcome::Same(_) => return,
        ReloadOutcome::New(index) => {
            let packages = index.catalog().packages().len().to_string();
            let fields = [configs, ("packages", &packages)];
            return voice::log(io, Level::Info, "serving changed catalog", &fields);
        }
        ReloadOutcome::Bad(error) => {
            for problem in &error.problems {
                voice::log(io, Level::Error, &problem.to_string(), &[configs]);
            }
            format!("{} problems", error.problems.len())
        }
        ReloadOutcome::Refused(error) => error.to_string(),
        ReloadOutcome::Lost(why) => why.clone(),
    };
    let text = "the changed catalog cannot be served, the one before still is";
    voice::log(io, Level::Error, text, &[configs, ("error", &why)]);
}

#[cfg(test)]
mod tests {
    use super::*;

    const CATALOG: &str = "schema: olm.package\nname: a\ndefaultChannel: c\n---\nschema: olm.channel\n\
        package: a\nname: c\nentries: [{name: a.v1}]\n---\nschema: olm.bundle\npackage: a\nname: a.v1\n\
        image: x/a:1\nproperties: [{type: olm.package, value: {packageName: a, version: 1.0.0}}]\n";

    #[test]
    fn another_catalog_than_the_cache_knows_is_refused_before_it_is_served() {
        let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let settings = |enforce| Settings {
            typed: "c".to_owned(),
            folder: folder.path().to_owned(),
            cache: Some(cache::Folder::find(cache.path(), "cache").unwrap()),
            enforce,
            cache_only: false,
            port: "0".to_owned(),
            debug: false,
        };
        let load = || Catalog::load(folder.path(), &LoadOptions::default()).unwrap();
        std::fs::write(folder.path().join("a.yaml"), CATALOG).unwrap();
        cache::Folder::find(cache.path(), "cache").unwrap().write(&load()).unwrap();
        assert!(settings(true).judge()(&load()).is_ok());

        std::fs::write(folder.path().join("a.yaml"), CATALOG.replace("x/a:1", "x/a:2")).unwrap();
        let why = settings(true).judge()(&load()).unwrap_err().to_string();
        assert!(why.starts_with("cache requires rebuild: "), "{why}");
        assert!(settings(false).judge()(&load()).is_ok(), "nobody wants it compared");
    }

    #[tokio::test]
    async fn a_port_that_serves_no_longer_is_noticed() {
        let mut broken = Some(tokio::spawn(async { panic!("broken") }));
        let why = ended(&mut broken).await.to_string();
        assert!(why.starts_with("serving ended unexpectedly: "), "{why}");
        let mut silent = Some(tokio::spawn(async {}));
        assert_eq!(ended(&mut silent).await.to_string(), "serving ended unexpectedly");
    }
}
