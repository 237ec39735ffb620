//! `opm registry serve`: serves the catalog of a database.
//!
//! The database is read once, and its catalog is served like any other: from memory, over gRPC and HTTP
//! on one port. Later changes of the file are ignored.

use super::super::call::{Call, CommandIo, Failure};
use super::super::command::{Action, Arguments, Command};
use super::super::database;
use super::super::error::PathError;
use super::super::flags::Flag;
use super::super::log::{self, Level};
use super::super::serve::{ServeError, TERMINATION_LOG, TerminationLog, address};
use mainstay_catalog::Catalog;
use mainstay_registry::http::CatalogHttpApi;
use mainstay_registry::server::{self, Limits};
use mainstay_registry::{RegistryIndex, ServedCatalogs, grpc};
use std::fs::File;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

/// The command.
pub(super) fn command() -> Command {
    Command {
        long: "Serves the catalog in a database: the registry API over gRPC and, on the same port, the HTTP\n\
               catalog API under /catalogs/database. The database is read once, at the start, and never\n\
               written. Convert it to a file-based catalog with opm migrate, and serve that with opm serve.",
        arguments: Arguments::None,
        flags: vec![
            super::database("bundles.db"),
            super::debug_flag(),
            Flag::text("port", Some('p'), "port to serve on").with_default("50051"),
            Flag::switch("skip-migrate", "accepted: a database is never changed"),
            Flag::text("termination-log", Some('t'), "file that gets the reason of a failure")
                .with_default(TERMINATION_LOG),
            Flag::text("timeout-seconds", None, "end after so many seconds")
                .with_default("infinite"),
        ],
        action: Some(Action::Async(|call| Box::pin(run(call)))),
        ..Command::new("serve", "Serve the catalog in a database")
    }
}

async fn run(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let typed = call.flags.text("termination-log").to_owned();
    let (termination_log, log_problem) =
        TerminationLog::open(&call.io.resolve_path(&typed), typed == TERMINATION_LOG);
    if let Some(why) = log_problem {
        let fields = [("error", &*format!("open {typed}: {why}"))];
        log::write(call.io, Level::Warning, "unable to set termination log path", &fields);
    }
    let flags = &call.flags;
    let [file, port, timeout] =
        ["database", "port", "timeout-seconds"].map(|name| flags.text(name).to_owned());
    serve(call.io, &file, &port, &timeout).await.map_err(|error| {
        let reason = error.to_string();
        termination_log.write(&reason);
        Failure::Usage(reason)
    })
}

async fn serve(
    io: &mut CommandIo<'_>,
    file: &str,
    port: &str,
    timeout: &str,
) -> Result<(), ServeError> {
    let path = io.resolve_path(file);
    let found = File::open(&path)
        .and_then(|opened| opened.metadata())
        .map_err(PathError::of("open", file))?;
    if !found.is_file() {
        return Err(ServeError::NoFile { file: file.to_owned() });
    }
    let catalog = database::read(io, &path)?.check().map_err(ServeError::Catalog)?;
    if let Some(message) = mainstay_registry::unserved_reason(&catalog) {
        return Err(ServeError::Refused { message });
    }
    listen(io, catalog, &[("database", file), ("port", port)], timeout).await
}

/// The serving time; none for no limit.
fn parse_timeout(timeout: &str) -> Result<Option<Duration>, ServeError> {
    if timeout == "infinite" {
        return Ok(None);
    }
    let refused = |fault| ServeError::Timeout { text: timeout.to_owned(), fault };
    if timeout.is_empty() || !timeout.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(refused("invalid syntax"));
    }
    let seconds: u16 = timeout.parse().map_err(|_| refused("value out of range"))?;
    Ok(Some(Duration::from_secs(seconds.into())))
}

async fn listen(
    io: &mut CommandIo<'_>,
    catalog: Arc<Catalog>,
    fields: &[(&str, &str); 2],
    timeout: &str,
) -> Result<(), ServeError> {
    let signals = |kind| signal(kind).map_err(ServeError::Signals);
    let mut interrupt = signals(SignalKind::interrupt())?;
    let mut terminate = signals(SignalKind::terminate())?;
    let listener = address::listen(fields[1].1).await;
    let listener = listener.map_err(ServeError::Listen)?;
    let open = format!("Keeping server open for {timeout} seconds");
    log::write(io, Level::Info, &open, fields);
    let parse_timeout = parse_timeout(timeout)?;
    let contents = Arc::new(ServedCatalogs::default());
    let served = contents.add("database");
    served.put(Arc::new(RegistryIndex::new(catalog, io.clock.now().into())));
    let stop = CancellationToken::new();
    let mut serving = tokio::spawn(server::serve(
        listener,
        CatalogHttpApi::new(Arc::clone(&contents)),
        grpc::service_until(served, stop.clone()),
        Limits::default(),
        None,
        stop.clone(),
    ));
    log::write(io, Level::Info, "serving registry", fields);
    let expired = async {
        match parse_timeout {
            Some(parse_timeout) => tokio::time::sleep(parse_timeout).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        outcome = &mut serving => {
            return Err(ServeError::Ended(outcome.err()));
        }
        () = expired => {
            log::write(io, Level::Info, "Timeout expired. Gracefully stopping.", fields);
        }
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    log::write(io, Level::Info, "shutting down server", fields);
    stop.cancel();
    // After a panic, the task has ended, too.
    let _ = serving.await;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timeout_is_infinite_or_a_number_of_seconds() {
        let parse_timeout = |text: &str| parse_timeout(text).map_err(|error| error.to_string());
        let refused = |text: &str, why| Err(format!("strconv.ParseUint: parsing {text:?}: {why}"));
        assert_eq!(parse_timeout("infinite"), Ok(None));
        assert_eq!(parse_timeout("065535"), Ok(Some(Duration::from_secs(65_535))));
        assert_eq!(parse_timeout("65536"), refused("65536", "value out of range"));
        for text in ["", "-1", "+1", "1s", "Infinite"] {
            assert_eq!(parse_timeout(text), refused(text, "invalid syntax"));
        }
    }
}
