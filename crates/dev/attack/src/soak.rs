//! Soak test: a mixed load for minutes, without leaks, failures or stalls.

use crate::report::Report;
use crate::server::Server;
use crate::wire::Identity;
use anyhow::Context as _;
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::sleep;

const CLIENTS: usize = 6;
/// The limit of memory growth after the first fifth of the time.
const MAX_MEMORY_GROWTH: u64 = 64 << 20;

/// Runs the load, and compares the process' resources after a fifth of the time with those at the
/// end.
pub(crate) async fn run(program: &Path, minutes: u64, report: &mut Report) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data").display().to_string();
    let server = Arc::new(Server::start(program, folder.path(), &["--data-dir", &data]).await?);
    let attacker = server.restricted_user().await?;
    let stop = Arc::new(AtomicBool::new(false));
    let (requests, failures) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let mut clients = Vec::new();
    for at in 0..CLIENTS {
        let identity = if at % 3 == 2 { attacker.clone() } else { server.admin() };
        clients.push(tokio::spawn(client(
            Arc::clone(&server),
            at,
            identity,
            Arc::clone(&stop),
            Arc::clone(&requests),
            Arc::clone(&failures),
        )));
    }
    let whole = Duration::from_secs(minutes * 60);
    sleep(whole / 5).await;
    let early = (server.memory("VmRSS")?, server.open_files()?, server.threads()?);
    sleep(whole / 5 * 4).await;
    let late = (server.memory("VmRSS")?, server.open_files()?, server.threads()?);
    stop.store(true, Ordering::Relaxed);
    for client in clients {
        client.await?.context("a client of the soak")?;
    }
    let mut server = Arc::into_inner(server).context("a client still has the server")?;
    server.alive().await?;
    let row = report.row("soak", "a mixed load", 3);
    let failed = failures.load(Ordering::Relaxed);
    row.check(failed == 0, || format!("{failed} responses were 5xx or never came"));
    row.check(late.0 < early.0 + MAX_MEMORY_GROWTH, || {
        format!("memory: {} MB, then {} MB", early.0 >> 20, late.0 >> 20)
    });
    row.check(late.1 <= early.1 + 64 && late.2 <= early.2 + 64, || {
        format!("files and threads: {early:?}, then {late:?}")
    });
    row.note(&format!(
        "{minutes} min, {} requests; {} MB after a fifth, {} MB at the end; {} and {} open files; {} and {} threads",
        requests.load(Ordering::Relaxed),
        early.0 >> 20,
        late.0 >> 20,
        early.1,
        late.1,
        early.2,
        late.2,
    ));
    row.done();
    server.stop().await
}

/// Creates, changes, lists, watches and deletes objects, and sends invalid requests, until `stop`
/// is set.
async fn client(
    server: Arc<Server>,
    at: usize,
    identity: Identity,
    stop: Arc<AtomicBool>,
    requests: Arc<AtomicU64>,
    failures: Arc<AtomicU64>,
) -> anyhow::Result<()> {
    let space = "/api/v1/namespaces/attacker";
    let mut round = 0_u64;
    while !stop.load(Ordering::Relaxed) {
        let mut connection = server.connect(&identity).await?;
        for _ in 0..20 {
            round += 1;
            let name = format!("soak-{at}-{}", round % 200);
            let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"round": round.to_string()}});
            let apply =
                json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"more": "x".repeat(500)}});
            let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "x"}]}});
            let calls = [
                ("POST", format!("{space}/configmaps"), "application/json", map.to_string()),
                (
                    "PATCH",
                    format!("{space}/configmaps/{name}?fieldManager=soak&force=true"),
                    "application/apply-patch+yaml",
                    apply.to_string(),
                ),
                ("GET", format!("{space}/configmaps?limit=50"), "application/json", String::new()),
                (
                    "GET",
                    format!(
                        "{space}/configmaps?watch=true&timeoutSeconds=1&resourceVersion=0&fieldSelector=metadata.name={name}"
                    ),
                    "application/json",
                    String::new(),
                ),
                ("POST", format!("{space}/pods"), "application/json", pod.to_string()),
                (
                    "GET",
                    "/api/v1/namespaces/victim/secrets/none".to_owned(),
                    "application/json",
                    String::new(),
                ),
                ("POST", format!("{space}/configmaps"), "application/json", "{".repeat(5000)),
                (
                    "DELETE",
                    format!("{space}/pods/{name}?gracePeriodSeconds=0"),
                    "application/json",
                    String::new(),
                ),
                ("DELETE", format!("{space}/configmaps/{name}"), "application/json", String::new()),
            ];
            for (method, path, media, body) in calls {
                // One watch in ten rounds: each lasts a second.
                if path.contains("watch=") && !round.is_multiple_of(10) {
                    continue;
                }
                let response = connection
                    .request(method, &path, &[("content-type", media)], body.as_bytes())
                    .await;
                requests.fetch_add(1, Ordering::Relaxed);
                let closed = if let Ok(response) = response {
                    failures.fetch_add(u64::from(response.status >= 500), Ordering::Relaxed);
                    let close = |value: &str| value.eq_ignore_ascii_case("close");
                    response.header("connection").is_some_and(close)
                } else {
                    // The server must announce the closing of a connection in use.
                    failures.fetch_add(1, Ordering::Relaxed);
                    true
                };
                if closed {
                    connection = server.connect(&identity).await?;
                }
            }
        }
    }
    Ok(())
}
