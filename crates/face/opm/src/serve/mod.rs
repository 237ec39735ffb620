//! `opm serve`: a catalog behind the registry API, and behind the HTTP catalog API on the same port.
//!
//! ```text
//! listen ─► load the folder (NOT_SERVING) ─► check ─► serve ─► reload on change …
//!                                              └► fatal, and the reason in the termination log
//! ```
//!
//! There is no cache to build: content is served from memory, half a second after the start. The cache
//! flags exist because image builds and pods pass them; [`cache`] has their meaning.

pub(super) mod address;
mod cache;
mod error;
mod load_failure;
mod termination_log;

use super::call::{Call, CommandIo, Failure};
use super::command::{Action, Arguments, Command};
use super::flags::Flag;
use super::log::{self, Level};
use cache::CacheError;
pub(super) use error::ServeError;
use mainstay_catalog::{Catalog, LoadOptions};
use mainstay_registry::http::CatalogHttpApi;
use mainstay_registry::reload::{CatalogValidator, Refusal, ReloadOutcome, WatchedFolder, follow};
use mainstay_registry::server::{self, AccessListener, Limits};
use mainstay_registry::{ServedCatalogs, grpc};
use std::error::Error;
use std::path::PathBuf;
use std::sync::Arc;
pub(super) use termination_log::TerminationLog;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The default termination log of a pod.
pub(super) const TERMINATION_LOG: &str = "/dev/termination-log";

/// The command.
pub(super) fn command() -> Command {
    Command {
        long: "Serves the file-based catalog in a folder: the registry API over gRPC and, on the same\n\
               port, the HTTP catalog API under /catalogs/NAME, where NAME is the folder's.\n\n\
               The port is open at once; health is NOT_SERVING until the catalog is loaded. When files\n\
               change, the catalog is loaded again: a valid one is served from then on; of an invalid one,\n\
               every problem is logged, and the catalog before it stays.\n\n\
               No cache is needed. --cache-dir names a folder with a digest: the start fails unless the\n\
               catalog is still the one that --cache-only read. Only --cache-only writes there, only\n\
               the digest; a cache that another opm built is neither changed nor used.\n\
               The flags about pprof are accepted and start nothing.",
        arguments: Arguments::Exactly(1),
        flags: vec![
            Flag::text("cache-dir", None, "folder with the digest of the catalog"),
            Flag::switch(
                "cache-enforce-integrity",
                "end with an error if the catalog is not the one of --cache-dir (default: true with --cache-dir and without --cache-only)",
            ),
            Flag::switch(
                "cache-only",
                "validate the catalog, write its digest to --cache-dir, and end",
            ),
            Flag::switch("debug", "log more, such as every call"),
            Flag::text("port", Some('p'), "port to serve on").with_default("50051"),
            Flag::text("pprof-addr", None, "accepted and checked, nothing listens there")
                .with_default("localhost:6060"),
            Flag::switch("pprof-capture-profiles", "accepted, nothing is captured"),
            Flag::text("termination-log", Some('t'), "file that gets the reason of a failure")
                .with_default(TERMINATION_LOG),
        ],
        action: Some(Action::Async(|call| Box::pin(run(call)))),
        ..Command::new("serve <source_path>", "Serve a file-based catalog")
    }
}

/// The settings of the command.
struct Settings {
    /// The folder as it was typed.
    typed: String,
    folder: PathBuf,
    cache: Option<cache::CacheFolder>,
    enforce: bool,
    cache_only: bool,
    port: String,
    debug: bool,
}

async fn run(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let typed = call.flags.text("termination-log").to_owned();
    // The default log exists only in a pod; elsewhere no file in /dev is created.
    let must_exist = typed == TERMINATION_LOG;
    let (termination_log, log_problem) =
        TerminationLog::open(&call.io.resolve_path(&typed), must_exist);
    let result = check_and_serve(call, log_problem.map(|why| format!("open {typed}: {why}"))).await;
    result.map_err(|error| {
        let reason = error.to_string();
        termination_log.write(&reason);
        Failure::Fatal(reason)
    })
}

/// Checks the flags and serves. `log_problem` is the error of the termination log.
async fn check_and_serve(
    call: &mut Call<'_, '_>,
    log_problem: Option<String>,
) -> Result<(), ServeError> {
    address::check(call.flags.text("pprof-addr")).map_err(ServeError::Profiles)?;
    if let Some(why) = log_problem {
        let text = "unable to set termination log path";
        log::write(call.io, Level::Warning, text, &[("error", &why)]);
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
        Some(cache::CacheFolder::find(&io.resolve_path(cache_dir), cache_dir)?)
    };
    let typed = call.argument(0).to_owned();
    Ok(Settings {
        folder: io.resolve_path(&typed),
        typed,
        cache,
        enforce,
        cache_only,
        port: flags.text("port").to_owned(),
        debug: flags.is_on("debug"),
    })
}

/// Serves the catalog, or writes its digest.
async fn serve(io: &mut CommandIo<'_>, settings: &Settings) -> Result<(), ServeError> {
    if settings.enforce
        && let Some(cache) = &settings.cache
    {
        cache.stored_digest().map_err(ServeError::Integrity)?;
    }
    if settings.cache_only {
        let catalog = Catalog::load(&settings.folder, &LoadOptions::default());
        let catalog = match catalog {
            Ok(catalog) => catalog,
            Err(error) => {
                return Err(
                    settings.refusal(io, &load_failure::explain_load_error(settings, error))
                );
            }
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
    /// Upstream's error for a catalog that cannot be served, which depends on its first check.
    fn refusal(&self, io: &CommandIo<'_>, error: &(dyn Error + 'static)) -> ServeError {
        let why = io.with_typed_path(&error.to_string(), &self.typed);
        let of_digest = matches!(
            load_failure::cache_error(error),
            Some(CacheError::Stale { .. } | CacheError::NoDigest(_))
        );
        let message = match (self.enforce, of_digest) {
            (true, true) => format!("integrity check failed: {why}"),
            (true, false) => format!("integrity check failed: compute digest: {why}"),
            (false, _) => {
                format!("failed to load or rebuild cache: failed to rebuild cache: {why}")
            }
        };
        ServeError::Refused { message }
    }

    /// The check of the first catalog.
    fn judge(&self) -> CatalogValidator {
        let cache = self.cache.clone().filter(|_| self.enforce);
        Arc::new(move |catalog| {
            if let Some(cache) = &cache {
                cache.check(catalog.blobs())?;
            }
            check_servable(catalog)
        })
    }

    /// The name of the catalog in URLs: the name of the folder, as far as it is valid there.
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

/// Checks that upstream would serve a valid catalog.
fn check_servable(catalog: &Catalog) -> Result<(), Refusal> {
    let refusal = mainstay_registry::unserved_reason(catalog);
    refusal.map_or(Ok(()), |message| Err(load_failure::Unservable { message }.into()))
}

/// An event while a catalog is served.
enum ServeEvent {
    Loaded(ReloadOutcome),
    WatchFailed(String),
    Request(String),
}

async fn listen(io: &mut CommandIo<'_>, settings: &Settings) -> Result<(), ServeError> {
    let signals = |kind| signal(kind).map_err(ServeError::Signals);
    let mut interrupt = signals(SignalKind::interrupt())?;
    let mut terminate = signals(SignalKind::terminate())?;
    let contents = Arc::new(ServedCatalogs::default());
    let served = contents.add(&settings.name());
    let (sender, mut events) = mpsc::channel(256);
    let stop = CancellationToken::new();

    // Upstream loads first and listens then, so an error of the catalog comes before one of the port.
    let listener = address::listen(&settings.port).await;
    let (port, mut serving) = match listener {
        Ok(listener) => {
            let port =
                listener.local_addr().map(|address| address.port().to_string()).unwrap_or_default();
            let task = tokio::spawn(server::serve(
                listener,
                CatalogHttpApi::new(Arc::clone(&contents)),
                grpc::service_until(Arc::clone(&served), stop.clone()),
                Limits::default(),
                settings.debug.then(|| log_requests(sender.clone())),
                stop.clone(),
            ));
            (Ok(port), Some(task))
        }
        Err(error) => (Err(ServeError::Listen(error)), None),
    };

    let reload_source = WatchedFolder {
        folder: settings.folder.clone(),
        options: LoadOptions::default(),
        clock: io.clock,
        judge: Arc::new(check_servable),
    };
    // Only the first catalog must match the cache folder.
    let check_and_serve = WatchedFolder { judge: settings.judge(), ..reload_source.clone() };
    let report_watch_failure =
        |why: &str| drop(sender.try_send(ServeEvent::WatchFailed(why.to_owned())));
    let load = || async {
        let source = if served.index().is_none() { &check_and_serve } else { &reload_source };
        let outcome = source.load(&served).await;
        // At the end of the program there is no receiver.
        let _ = sender.send(ServeEvent::Loaded(outcome)).await;
    };
    let mut folder_watch = Box::pin(follow(&settings.folder, io.clock, report_watch_failure, load));
    // The result of the bind; none once the catalog is served.
    let (mut following_folder, mut port) = (true, Some(port));
    loop {
        let event = tokio::select! {
            () = &mut folder_watch, if following_folder => { following_folder = false; continue; }
            Some(event) = events.recv() => event,
            error = wait_for_end(&mut serving) => return Err(error),
            _ = interrupt.recv() => break,
            _ = terminate.recv() => break,
        };
        match event {
            ServeEvent::Loaded(outcome) => match port.take() {
                Some(port) => {
                    check_first_load(io, settings, outcome)?;
                    let fields = [("configs", settings.typed.as_str()), ("port", &*port?)];
                    log::write(io, Level::Info, "serving registry", &fields);
                }
                None => log_reload(io, settings, &outcome),
            },
            ServeEvent::WatchFailed(why) => {
                let fields = [("configs", settings.typed.as_str()), ("error", &why)];
                log::write(io, Level::Warning, "changes of the catalog are noticed late", &fields);
            }
            ServeEvent::Request(what) => log::write(io, Level::Debug, &what, &[]),
        }
    }
    log::write(io, Level::Info, "shutting down server", &[("configs", &settings.typed)]);
    stop.cancel();
    if let Some(serving) = serving {
        // After a panic, the task has ended, too.
        let _ = serving.await;
    }
    Ok(())
}

/// Waits for the end of the server task, if there is one; it should not end by itself.
async fn wait_for_end(serving: &mut Option<JoinHandle<()>>) -> ServeError {
    let Some(task) = serving else { return std::future::pending().await };
    ServeError::Ended(task.await.err())
}

/// Reports every request; drops reports when the channel is full.
fn log_requests(sender: mpsc::Sender<ServeEvent>) -> AccessListener {
    Arc::new(move |answer| {
        let line = format!(
            "{} {} {} for {}",
            answer.method,
            answer.uri,
            answer.status.as_u16(),
            answer.peer
        );
        let _ = sender.try_send(ServeEvent::Request(line));
    })
}

/// Checks the result of the first load.
fn check_first_load(
    io: &CommandIo<'_>,
    settings: &Settings,
    outcome: ReloadOutcome,
) -> Result<(), ServeError> {
    match outcome {
        ReloadOutcome::New(_) | ReloadOutcome::Same(_) => Ok(()),
        ReloadOutcome::Bad(error) => {
            Err(settings.refusal(io, &load_failure::explain_load_error(settings, error)))
        }
        ReloadOutcome::Refused(error) => Err(settings.refusal(io, &*error)),
        ReloadOutcome::Lost(reason) => Err(ServeError::Unread { reason }),
    }
}

/// Logs the result of a later load.
fn log_reload(io: &mut CommandIo<'_>, settings: &Settings, outcome: &ReloadOutcome) {
    let configs = ("configs", settings.typed.as_str());
    let why = match outcome {
        ReloadOutcome::Same(_) => return,
        ReloadOutcome::New(index) => {
            let packages = index.catalog().packages().len().to_string();
            let fields = [configs, ("packages", &packages)];
            return log::write(io, Level::Info, "serving changed catalog", &fields);
        }
        ReloadOutcome::Bad(error) => {
            for problem in &error.problems {
                log::write(io, Level::Error, &problem.to_string(), &[configs]);
            }
            format!("{} problems", error.problems.len())
        }
        ReloadOutcome::Refused(error) => error.to_string(),
        ReloadOutcome::Lost(why) => why.clone(),
    };
    let text = "the changed catalog cannot be served, the one before still is";
    log::write(io, Level::Error, text, &[configs, ("error", &why)]);
}

#[cfg(test)]
mod tests {
    use super::*;

    const CATALOG: &str = "schema: olm.package\nname: a\ndefaultChannel: c\n---\nschema: olm.channel\n\
        package: a\nname: c\nentries: [{name: a.v1}]\n---\nschema: olm.bundle\npackage: a\nname: a.v1\n\
        image: x/a:1\nproperties: [{type: olm.package, value: {packageName: a, version: 1.0.0}}]\n";

    #[test]
    fn a_catalog_with_another_digest_than_the_cache_is_refused_at_the_start() {
        let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let settings = |enforce| Settings {
            typed: "c".to_owned(),
            folder: folder.path().to_owned(),
            cache: Some(cache::CacheFolder::find(cache.path(), "cache").unwrap()),
            enforce,
            cache_only: false,
            port: "0".to_owned(),
            debug: false,
        };
        let load = || Catalog::load(folder.path(), &LoadOptions::default()).unwrap();
        std::fs::write(folder.path().join("a.yaml"), CATALOG).unwrap();
        cache::CacheFolder::find(cache.path(), "cache").unwrap().write(&load()).unwrap();
        assert!(settings(true).judge()(&load()).is_ok());

        std::fs::write(folder.path().join("a.yaml"), CATALOG.replace("x/a:1", "x/a:2")).unwrap();
        let why = settings(true).judge()(&load()).unwrap_err().to_string();
        assert!(why.starts_with("cache requires rebuild: "), "{why}");
        assert!(settings(false).judge()(&load()).is_ok(), "the digest is not enforced");
    }

    #[tokio::test]
    async fn the_end_of_the_server_task_is_an_error() {
        let mut failed = Some(tokio::spawn(async { panic!("broken") }));
        let why = wait_for_end(&mut failed).await.to_string();
        assert!(why.starts_with("serving ended unexpectedly: "), "{why}");
        let mut silent = Some(tokio::spawn(async {}));
        assert_eq!(wait_for_end(&mut silent).await.to_string(), "serving ended unexpectedly");
    }
}
