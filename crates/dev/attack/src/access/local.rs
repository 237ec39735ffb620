//! Local attacks by other users of the machine and web pages in a browser: ports without TLS, and
//! shared folders.

use super::shows_canary;
use crate::report::Report;
use crate::server::{RESPONSE_TIMEOUT, Server};
use crate::wire::Connection;
use anyhow::Context as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;
use tokio::time::timeout;

const MANIFEST: &str = r#"{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{"mediaType":"application/vnd.oci.empty.v1+json","digest":"sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a","size":2},"layers":[]}"#;

pub(super) async fn run(
    program: &Path,
    server: &Server,
    folder: &Path,
    report: &mut Report,
) -> anyhow::Result<()> {
    registry(server, report).await?;
    catalogs(server, report).await?;
    folders(program, folder, report).await
}

/// Writes to the registry without its credential, or from a web page.
async fn registry(server: &Server, report: &mut Report) -> anyhow::Result<()> {
    let row = report.row("access", "writes to the registry without its password", 30);
    let address = server.port("registry")?;
    let origins: [&[(&str, &str)]; 6] = [
        &[],
        &[("origin", "https://evil.example")],
        &[("origin", "null")],
        &[("authorization", "Basic YWRtaW46YWRtaW4=")],
        &[("authorization", "Basic Og==")],
        &[("authorization", "Bearer x")],
    ];
    let writes = [
        ("POST", "/v2/evil/blobs/uploads/"),
        (
            "POST",
            "/v2/evil/blobs/uploads/?digest=sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
        ),
        (
            "POST",
            "/v2/evil/blobs/uploads/?mount=sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a&from=x",
        ),
        ("PUT", "/v2/evil/manifests/latest"),
        ("DELETE", "/v2/evil/manifests/latest"),
    ];
    for headers in origins {
        for (method, path) in writes {
            let mut connection = Connection::plain(&address).await?;
            let body: &[u8] = if method == "PUT" { MANIFEST.as_bytes() } else { b"" };
            let mut headers = headers.to_vec();
            headers.push(("content-type", "application/vnd.oci.image.manifest.v1+json"));
            let response = connection.request(method, path, &headers, body).await?;
            row.check(response.is_refusal(), || {
                format!("{method} {path} with {headers:?}: {} {}", response.status, response.text())
            });
        }
    }
    for (method, headers) in [
        ("GET", [("origin", "https://evil.example"), ("sec-fetch-site", "cross-site")]),
        ("OPTIONS", [("origin", "https://evil.example"), ("access-control-request-method", "PUT")]),
    ] {
        let mut connection = Connection::plain(&address).await?;
        let response = connection.request(method, "/v2/", &headers, b"").await?;
        let open = response.header("access-control-allow-origin").is_some();
        row.check((400..500).contains(&response.status) && !open, || {
            format!("{method} of a page: {} {:?}", response.status, response.headers)
        });
    }
    row.done();
    Ok(())
}

/// The catalog's port is read-only, and has no access to the cluster.
async fn catalogs(server: &Server, report: &mut Report) -> anyhow::Result<()> {
    let row = report.row("access", "requests to the catalog's port", 20);
    let address = server.port("grpc")?;
    for path in [
        "/catalogs/hostile/../../etc/passwd",
        "/catalogs/..%2f..%2fetc/passwd",
        "/catalogs/hostile%00",
        "/",
        "/api/v1/secrets",
    ] {
        for method in ["GET", "POST", "PUT", "DELETE"] {
            let mut connection = Connection::plain(&address).await?;
            let response = connection.request(method, path, &[], b"").await?;
            let leaks = shows_canary(&response.body) || response.text().contains("root:");
            row.check((400..500).contains(&response.status) && !leaks, || {
                format!("{method} {path}: {} {}", response.status, response.text())
            });
        }
    }
    row.done();
    Ok(())
}

/// Names in the shared temporary folder are created before the program starts.
async fn folders(program: &Path, folder: &Path, report: &mut Report) -> anyhow::Result<()> {
    let row = report.row("access", "tricks in shared folders", 4);
    let shared = folder.join("tmp");
    std::fs::create_dir(&shared)?;
    std::fs::set_permissions(&shared, std::fs::Permissions::from_mode(0o1777))?;
    let bait = folder.join("bait");
    std::fs::write(&bait, "bait")?;
    // The likely ids of the next processes.
    let next = std::process::id();
    for at in next..next + 3000 {
        for name in [
            format!("mainstay-{at}.kubeconfig"),
            format!("mainstay-{at}"),
            format!("mainstay-{at}-images"),
        ] {
            symlink(&bait, shared.join(name))?;
        }
    }
    let mut child = Command::new(program)
        .args(["up", "--in-memory", "--listen", "127.0.0.1:0"])
        .env("TMPDIR", &shared)
        .env_remove("XDG_RUNTIME_DIR")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut lines = BufReader::new(child.stdout.take().context("no output")?).lines();
    let mut kubeconfig = None;
    let started = timeout(RESPONSE_TIMEOUT, async {
        while let Ok(Some(line)) = lines.next_line().await {
            if let Some(path) = line.strip_prefix("kubeconfig") {
                kubeconfig = Some(PathBuf::from(path.trim()));
            }
            if line.starts_with("ready") {
                return true;
            }
        }
        false
    })
    .await;
    row.check(matches!(started, Ok(true)), || {
        "the start does not survive names that are taken".to_owned()
    });
    row.check(std::fs::read(&bait)? == b"bait", || {
        "a link was followed and its target written".to_owned()
    });
    if let Some(file) = kubeconfig {
        let mode = std::fs::metadata(&file)?.permissions().mode() & 0o777;
        let parent = file.parent().context("no folder")?;
        let around = std::fs::metadata(parent)?.permissions().mode() & 0o777;
        row.check(mode == 0o600 && around == 0o700, || {
            format!("{}: {mode:o} in {around:o}", file.display())
        });
    }
    child.kill().await?;
    // A named pipe as kubeconfig: rejected, or stopped by SIGTERM, never stuck.
    let pipe = folder.join("pipe");
    let mkfifo_status = std::process::Command::new("mkfifo").arg(&pipe).status()?;
    anyhow::ensure!(mkfifo_status.success(), "mkfifo failed");
    let mut child = crate::server::command(program, &pipe, &["--in-memory"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()?;
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    if let Some(pid) = child.id() {
        let pid = rustix::process::Pid::from_raw(i32::try_from(pid)?).context("no process")?;
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
    }
    let ended = timeout(RESPONSE_TIMEOUT, child.wait()).await;
    row.check(ended.is_ok(), || "a start that hangs is not ended by SIGTERM".to_owned());
    row.done();
    Ok(())
}
