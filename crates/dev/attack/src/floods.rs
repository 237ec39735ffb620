//! Connection floods: while each flood lasts, the administrator and a catalog client are served on
//! new connections.

use crate::report::Report;
use crate::server::{ATTACKER_NAMESPACE, RESPONSE_TIMEOUT, Server};
use crate::wire::{Address, Connection, Identity, tls_config, tls_stream};
use anyhow::Context as _;
use bytes::Bytes;
use futures::future::join_all;
use http::Request;
use http_body_util::{BodyExt as _, Empty, StreamBody};
use hyper::body::Frame;
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// More connections than the API's port accepts at the same time.
const API_CONNECTIONS: usize = 4600;
/// More connections than a catalog's or the registry's port accepts.
const REGISTRY_CONNECTIONS: usize = 1200;
/// The number of connections with request heads of maximum length.
const LONG_HEAD_CONNECTIONS: usize = 2000;
/// The limit of the server's memory growth.
const MAX_MEMORY_GROWTH: u64 = 256 << 20;
/// A common limit of open files per process.
const FILE_LIMIT: u32 = 1024;
/// The number of requests of other clients during a flood.
const OTHER_REQUESTS: usize = 20;

/// Floods every port of one cluster.
pub(crate) async fn run(program: &Path, report: &mut Report) -> anyhow::Result<()> {
    raise_limit()?;
    let folder = tempfile::tempdir()?;
    let catalog = folder.path().join("catalog");
    std::fs::create_dir(&catalog)?;
    std::fs::write(catalog.join("c.json"), r#"{"schema":"olm.package","name":"a"}"#)?;
    let catalog = format!("flood={}", catalog.display());
    let mut server =
        Server::start(program, folder.path(), &["--in-memory", "--catalog", &catalog]).await?;
    let api = server.api.clone();

    let open_connections = open(&api, API_CONNECTIONS, b"").await;
    check_others_are_served(
        &server,
        report,
        "idle connections",
        open_connections.len(),
        API_CONNECTIONS,
        None,
    )
    .await?;
    drop(open_connections);
    // The beginning of a TLS handshake.
    let open_connections = open(&api, API_CONNECTIONS, &[0x16, 0x03, 0x01, 0x02, 0x00, 0x01]).await;
    check_others_are_served(
        &server,
        report,
        "handshakes half-sent",
        open_connections.len(),
        API_CONNECTIONS,
        None,
    )
    .await?;
    drop(open_connections);
    half_heads(&server, report).await?;
    full_heads(&server, report).await?;
    one_user(&server, report).await?;
    for word in ["grpc", "registry"] {
        let address = server.port(word)?;
        for (what, bytes) in
            [("is idle", &b""[..]), ("sends half a head", b"GET / HTTP/1.1\r\nhost: x\r\nx-a: ")]
        {
            let open_connections = open(&address, REGISTRY_CONNECTIONS, bytes).await;
            let name = match (word, what) {
                ("grpc", "is idle") => "catalog port: idle connections",
                ("grpc", _) => "catalog port: heads half-sent",
                (_, "is idle") => "registry: idle connections",
                _ => "registry: heads half-sent",
            };
            check_others_are_served(
                &server,
                report,
                name,
                open_connections.len(),
                REGISTRY_CONNECTIONS,
                Some(&address),
            )
            .await?;
        }
    }
    streams(&server, report).await?;
    resets(&server, report).await?;
    pipelined(&server, report).await?;
    server.alive().await?;
    server.stop().await?;
    few_files(program, folder.path(), report).await
}

/// The same with a low limit of open files.
async fn few_files(program: &Path, folder: &Path, report: &mut Report) -> anyhow::Result<()> {
    let limited = folder.join("limited");
    let program = std::path::absolute(program)?;
    let script =
        format!("#!/bin/sh\nulimit -n {FILE_LIMIT}\nexec '{}' \"$@\"\n", program.display());
    std::fs::write(&limited, script)?;
    std::fs::set_permissions(&limited, Permissions::from_mode(0o700))?;
    let data = folder.join("data");
    let data = data.to_str().context("a folder whose name is no text")?;
    let mut server = Server::start(&limited, folder, &["--data-dir", data]).await?;
    let open_connections = open(&server.api, REGISTRY_CONNECTIONS, b"").await;
    let name = "connections where 1,024 files may be open";
    check_others_are_served(
        &server,
        report,
        name,
        open_connections.len(),
        REGISTRY_CONNECTIONS,
        None,
    )
    .await?;
    server.alive().await?;
    server.stop().await
}

/// Raises this process' limit of open files to the maximum.
fn raise_limit() -> anyhow::Result<()> {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).context("raise the limit of open files")
}

#[expect(clippy::disallowed_methods, reason = "the attacker measures how long others wait")]
fn beginning() -> Instant {
    Instant::now()
}

/// Opens connections that send some bytes and stay open.
async fn open(address: &Address, count: usize, bytes: &[u8]) -> Vec<TcpStream> {
    let mut out = Vec::new();
    while out.len() < count {
        let batch = (count - out.len()).min(200);
        let opened = (0..batch).map(|_| async {
            let mut stream = timeout(Duration::from_secs(5), address.dial()).await.ok()?.ok()?;
            stream.write_all(bytes).await.ok()?;
            Some(stream)
        });
        let opened: Vec<TcpStream> = join_all(opened).await.into_iter().flatten().collect();
        // Connections beyond the limit wait in the system's accept queue.
        if opened.is_empty() {
            break;
        }
        out.extend(opened);
    }
    out
}

/// During a flood, checks that others are served on new connections.
async fn check_others_are_served(
    server: &Server,
    report: &mut Report,
    name: &'static str,
    open_connections: usize,
    wanted: usize,
    port: Option<&Address>,
) -> anyhow::Result<()> {
    let row = report.row("floods", name, OTHER_REQUESTS);
    // A flood of too few connections proves nothing.
    if open_connections < wanted {
        row.finding(format!(
            "only {open_connections} connections or streams of {wanted} could be opened"
        ));
    }
    let mut slowest = Duration::ZERO;
    for at in 0..OTHER_REQUESTS {
        let begun = beginning();
        let answered = match port {
            None => {
                timeout(RESPONSE_TIMEOUT, server.ask("GET", "/api/v1/namespaces/default", None))
                    .await
                    .is_ok_and(|outcome| outcome.is_ok_and(|response| response.status == 200))
            }
            Some(address) => timeout(RESPONSE_TIMEOUT, async {
                let mut connection = Connection::plain(address).await?;
                connection.request("GET", "/healthz", &[], b"").await
            })
            .await
            .is_ok_and(|outcome| outcome.is_ok()),
        };
        slowest = slowest.max(begun.elapsed());
        row.check(answered, || {
            format!("request {at} beside {open_connections} connections is not answered")
        });
        if !answered {
            break;
        }
    }
    row.note(&format!(
        "{open_connections} connections held; the slowest of {OTHER_REQUESTS} requests {} ms",
        slowest.as_millis()
    ));
    row.done();
    Ok(())
}

/// Complete TLS handshakes with incomplete request heads.
async fn half_heads(server: &Server, report: &mut Report) -> anyhow::Result<()> {
    let config = tls_config(server.roots(), &Identity::Anonymous, &[b"http/1.1"])?;
    let mut open_connections = Vec::new();
    while open_connections.len() < API_CONNECTIONS {
        let batch = (0..100.min(API_CONNECTIONS - open_connections.len())).map(|_| {
            let config = config.clone();
            async {
                let opened =
                    timeout(RESPONSE_TIMEOUT, tls_stream(&server.api, config)).await.ok()?;
                let mut stream = opened.ok()?;
                stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\nx-a: ").await.ok()?;
                Some(stream)
            }
        });
        let opened: Vec<_> = join_all(batch).await.into_iter().flatten().collect();
        if opened.is_empty() {
            break;
        }
        open_connections.extend(opened);
    }
    check_others_are_served(
        server,
        report,
        "heads half-sent",
        open_connections.len(),
        API_CONNECTIONS,
        None,
    )
    .await?;
    // An occasional byte must not extend a connection's deadline.
    for stream in &mut open_connections {
        let _ = timeout(Duration::from_millis(10), stream.write_all(b"a")).await;
    }
    check_others_are_served(
        server,
        report,
        "heads sent slowly",
        open_connections.len(),
        API_CONNECTIONS,
        None,
    )
    .await
}

/// Complete TLS handshakes with endless request heads of a quarter of a megabyte.
async fn full_heads(server: &Server, report: &mut Report) -> anyhow::Result<()> {
    let config = tls_config(server.roots(), &Identity::Anonymous, &[b"http/1.1"])?;
    let before = server.memory("VmRSS")?;
    server.reset_peak()?;
    let head = format!("GET /healthz HTTP/1.1\r\nhost: x\r\nx-a: {}", "a".repeat(250_000));
    let (mut open_connections, mut sent) = (Vec::new(), 0);
    while sent < LONG_HEAD_CONNECTIONS {
        let batch = (0..50).map(|_| async {
            let opened =
                timeout(RESPONSE_TIMEOUT, tls_stream(&server.api, config.clone())).await.ok()?;
            let mut stream = opened.ok()?;
            // The server may close the connection in the middle.
            let _ = timeout(RESPONSE_TIMEOUT, stream.write_all(head.as_bytes())).await;
            Some(stream)
        });
        let opened: Vec<_> = join_all(batch).await.into_iter().flatten().collect();
        if opened.is_empty() {
            break;
        }
        sent += opened.len();
        open_connections.extend(opened);
    }
    check_others_are_served(
        server,
        report,
        "heads of a quarter of a megabyte",
        sent,
        LONG_HEAD_CONNECTIONS,
        None,
    )
    .await?;
    let grown = server.memory("VmHWM")?.saturating_sub(before);
    let row = report.row("floods", "memory of long heads", 1);
    row.check(grown < MAX_MEMORY_GROWTH, || format!("{} MB more than before", grown >> 20));
    row.note(&format!("{} MB more than before at most", grown >> 20));
    row.done();
    Ok(())
}

/// One authenticated user with more watches than the server allows, each on a connection of its
/// own.
async fn one_user(server: &Server, report: &mut Report) -> anyhow::Result<()> {
    let user = server.restricted_user().await?;
    let path = format!("/api/v1/namespaces/{ATTACKER_NAMESPACE}/configmaps?watch=1");
    let mut open_connections = Vec::new();
    while open_connections.len() < API_CONNECTIONS {
        let batch = (0..100.min(API_CONNECTIONS - open_connections.len())).map(|_| {
            let (user, path) = (&user, &path);
            async move {
                let mut connection =
                    timeout(RESPONSE_TIMEOUT, server.connect(user)).await.ok()?.ok()?;
                let head = connection.head("GET", path, &[]) + "\r\n";
                connection.send(head.as_bytes()).await.ok()?;
                Some(connection)
            }
        });
        let opened: Vec<_> = join_all(batch).await.into_iter().flatten().collect();
        if opened.is_empty() {
            break;
        }
        open_connections.extend(opened);
    }
    check_others_are_served(
        server,
        report,
        "watches of one user",
        open_connections.len(),
        API_CONNECTIONS,
        None,
    )
    .await
}

/// One connection with the maximum number of streams, whose bodies never end.
async fn streams(server: &Server, report: &mut Report) -> anyhow::Result<()> {
    let config = tls_config(server.roots(), &Identity::Anonymous, &[b"h2"])?;
    let mut kept = Vec::new();
    let mut opened = 0;
    for _ in 0..20 {
        let stream = tls_stream(&server.api, config.clone()).await?;
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
                .await?;
        let driver = tokio::spawn(connection);
        for _ in 0..900 {
            let body =
                StreamBody::new(futures::stream::pending::<Result<Frame<Bytes>, Infallible>>())
                    .boxed();
            let request = Request::post(format!(
                "https://{}/api/v1/namespaces/default/configmaps",
                server.api.authority()
            ))
            .header("content-type", "application/json")
            .body(body)?;
            kept.push(tokio::spawn(sender.send_request(request)));
            opened += 1;
        }
        kept.push(tokio::spawn(async move {
            let _ = driver.await;
            futures::future::pending().await
        }));
    }
    check_others_are_served(server, report, "HTTP/2 streams without an end", opened, 18_000, None)
        .await?;
    for task in kept {
        task.abort();
    }
    Ok(())
}

/// Streams that are opened and cancelled at once.
async fn resets(server: &Server, report: &mut Report) -> anyhow::Result<()> {
    let config = tls_config(server.roots(), &Identity::Anonymous, &[b"h2"])?;
    let time = server.processor_time()?;
    let mut cancelled = 0;
    for _ in 0..10 {
        let stream = tls_stream(&server.api, config.clone()).await?;
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
                .await?;
        let driver = tokio::spawn(connection);
        for _ in 0..2000 {
            let request =
                Request::get(format!("https://{}/api/v1/secrets", server.api.authority()))
                    .body(Empty::<Bytes>::new())?;
            if sender.ready().await.is_err() {
                break;
            }
            drop(tokio::spawn(sender.send_request(request)));
            tokio::task::yield_now().await;
            cancelled += 1;
        }
        driver.abort();
    }
    let used = server.processor_time()?.saturating_sub(time);
    check_others_are_served(
        server,
        report,
        "HTTP/2 streams that are cancelled",
        cancelled,
        20_000,
        None,
    )
    .await?;
    let row = report.row("floods", "cost of cancelled streams", 1);
    row.check(used < 20_000, || format!("{used} ms of processor time"));
    row.note(&format!("{cancelled} streams, {used} ms of processor time"));
    row.done();
    Ok(())
}

/// Requests of a client that never reads the responses.
async fn pipelined(server: &Server, report: &mut Report) -> anyhow::Result<()> {
    let config = tls_config(server.roots(), &server.admin(), &[b"http/1.1"])?;
    let mut open_connections = Vec::new();
    for _ in 0..20 {
        let mut stream = tls_stream(&server.api, config.clone()).await?;
        let one = format!("GET /openapi/v2 HTTP/1.1\r\nhost: {}\r\n\r\n", server.api.authority());
        let _ =
            timeout(Duration::from_millis(200), stream.write_all(one.repeat(500).as_bytes())).await;
        let _ = timeout(Duration::from_millis(1), stream.read(&mut [0; 1])).await;
        open_connections.push(stream);
    }
    check_others_are_served(
        server,
        report,
        "responses that nobody reads",
        open_connections.len() * 500,
        10_000,
        None,
    )
    .await
}
