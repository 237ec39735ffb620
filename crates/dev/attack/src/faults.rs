//! Fault attacks: kills at any time, damaged files, and a data folder that is deleted or full.
//! Acknowledged writes survive, and damaged data is rejected or left out as a whole, never served.

use crate::report::Report;
use crate::server::{Server, Start};
use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::time::sleep;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const KILLS: u64 = 45;
const KILLS_AT_START: u64 = 30;
const CLIENTS: usize = 16;
/// Acknowledged writes before each kill; at least 14,176 in total.
const WRITES_PER_KILL: u64 = 320;
const CORRUPTIONS: usize = 62;

/// Acknowledged state: the value of each name, or none after its deletion.
type Acknowledged = BTreeMap<String, Option<String>>;

/// Writes and their outcomes.
#[derive(Default)]
struct WriteLog {
    acknowledged: Acknowledged,
    /// Names whose last write was in flight when the server died.
    in_flight: BTreeMap<String, Option<String>>,
}

pub(crate) async fn run(program: &Path, report: &mut Report) -> anyhow::Result<()> {
    kills(program, report).await?;
    corruptions(program, report).await?;
    folders(program, report).await
}

async fn kills(program: &Path, report: &mut Report) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data").display().to_string();
    let arguments = ["--data-dir", data.as_str()];
    let log = Arc::new(Mutex::new(WriteLog::default()));
    let row = report.row("faults", "kills while clients write", 45);
    let mut acknowledged = 0;
    for round in 0..KILLS {
        let server = Arc::new(Server::start(program, folder.path(), &arguments).await?);
        check(&server, &log, |finding| row.finding(format!("after {round} kills: {finding}")))
            .await?;
        let done = Arc::new(AtomicU64::new(0));
        let clients: Vec<_> = (0..CLIENTS)
            .map(|at| {
                tokio::spawn(write(
                    Arc::clone(&server),
                    round,
                    at,
                    Arc::clone(&log),
                    Arc::clone(&done),
                ))
            })
            .collect();
        let until = WRITES_PER_KILL + u64::from(random()?) % 64;
        while done.load(Ordering::Relaxed) < until {
            // A client ends early only at an unexpected status.
            if clients.iter().all(tokio::task::JoinHandle::is_finished) {
                row.finding(format!("after {round} kills: every client met an unexpected status"));
                break;
            }
            sleep(Duration::from_millis(1)).await;
        }
        let pid =
            rustix::process::Pid::from_raw(i32::try_from(server.pid()?)?).context("no process")?;
        rustix::process::kill_process(pid, rustix::process::Signal::KILL)?;
        for client in clients {
            client.await?;
        }
        let server = Arc::into_inner(server).context("a client still has the server")?;
        server.kill().await?;
        acknowledged += done.load(Ordering::Relaxed);
        row.tried();
    }
    row.note(&format!("{acknowledged} acknowledged writes of {CLIENTS} clients"));
    if acknowledged < 14_176 {
        row.finding(format!("only {acknowledged} acknowledged writes"));
    }
    row.done();
    let row = report.row("faults", "kills while it starts", 30);
    for _ in 0..KILLS_AT_START {
        let mut child =
            crate::server::command(program, &folder.path().join("kubeconfig"), &arguments)
                .stdout(std::process::Stdio::null())
                .kill_on_drop(true)
                .spawn()?;
        sleep(Duration::from_millis(u64::from(random()?) % 400)).await;
        child.kill().await?;
        row.tried();
    }
    let server = Server::start(program, folder.path(), &arguments).await?;
    check(&server, &log, |finding| row.finding(finding)).await?;
    row.done();
    server.stop().await
}

fn random() -> anyhow::Result<u16> {
    let mut bytes = [0; 2];
    getrandom::fill(&mut bytes).map_err(|error| anyhow::anyhow!("{error}"))?;
    Ok(u16::from_le_bytes(bytes))
}

/// Creates, changes and deletes objects until the server is killed.
async fn write(
    server: Arc<Server>,
    round: u64,
    at: usize,
    log: Arc<Mutex<WriteLog>>,
    done: Arc<AtomicU64>,
) {
    let Ok(mut connection) = server.connect(&server.admin()).await else { return };
    for step in 0_u64.. {
        let name = format!("k{at}-{}", step % 12);
        let value = format!("{round}-{step}");
        let known =
            log.lock().is_ok_and(|log| matches!(log.acknowledged.get(&name), Some(Some(_))));
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"v": value}});
        let one = format!("{MAPS}/{name}");
        let (method, path, wanted) = match (known, step % 3) {
            (false, _) => ("POST", MAPS, Some(value)),
            (true, 2) => ("DELETE", one.as_str(), None),
            (true, _) => ("PUT", one.as_str(), Some(value)),
        };
        if let Ok(mut log) = log.lock() {
            log.in_flight.insert(name.clone(), wanted.clone());
        }
        let body = if method == "DELETE" { String::new() } else { object.to_string() };
        let headers = [("content-type", "application/json")];
        let Ok(response) = connection.request(method, path, &headers, body.as_bytes()).await else {
            return;
        };
        let Ok(mut log) = log.lock() else { return };
        log.in_flight.remove(&name);
        match response.status {
            200 | 201 => {
                log.acknowledged.insert(name, wanted);
                done.fetch_add(1, Ordering::Relaxed);
            }
            // The outcome was unknown at the last kill: the server's state counts.
            404 => drop(log.acknowledged.insert(name, None)),
            409 => drop(log.acknowledged.insert(name, Some(String::new()))),
            _ => return,
        }
    }
}

/// Compares the server's state with the acknowledged one.
async fn check(
    server: &Server,
    log: &Mutex<WriteLog>,
    mut found: impl FnMut(String),
) -> anyhow::Result<()> {
    let list = server.must("GET", MAPS, None).await?;
    let has: BTreeMap<&str, &str> = values(&list);
    let mut log = log.lock().map_err(|_| anyhow::anyhow!("a client has panicked"))?;
    for (name, value) in &log.acknowledged {
        let now = has.get(name.as_str()).copied();
        let in_flight = log.in_flight.get(name);
        let is_open = in_flight.is_some_and(|wanted| wanted.as_deref() == now);
        // Empty stands for an object that a conflict reported, with any value.
        let fine = match value.as_deref() {
            Some("") => now.is_some(),
            value => value == now,
        };
        if !fine && !is_open {
            found(format!("{name}: acknowledged {value:?}, there is {now:?}"));
        }
    }
    // From here on the server's current state counts.
    let now: Acknowledged = log
        .acknowledged
        .keys()
        .chain(log.in_flight.keys())
        .map(|name| (name.clone(), has.get(name.as_str()).map(|value| (*value).to_owned())))
        .collect();
    *log = WriteLog { acknowledged: now, in_flight: BTreeMap::new() };
    Ok(())
}

fn values(list: &Value) -> BTreeMap<&str, &str> {
    list["items"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|item| Some((item["metadata"]["name"].as_str()?, item["data"]["v"].as_str()?)))
        .collect()
}

/// Damages the files of the data folder one at a time.
async fn corruptions(program: &Path, report: &mut Report) -> anyhow::Result<()> {
    let row = report.row("faults", "damaged files", CORRUPTIONS);
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    let argument = data.display().to_string();
    let server = Server::start(program, folder.path(), &["--data-dir", &argument]).await?;
    let count = 300;
    for at in 0..count {
        let name = format!("c{at:04}");
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"v": name}});
        server.must("POST", MAPS, Some(&object)).await?;
    }
    server.kill().await?;
    let saved = folder.path().join("saved");
    copy(&data, &saved)?;
    let files = files_of(&saved)?;
    let (mut refused, mut served) = (0, 0);
    for at in 0..CORRUPTIONS {
        fs::remove_dir_all(&data)?;
        copy(&saved, &data)?;
        let file = &files[at % files.len()];
        let what = damage(&data.join(file), at / files.len(), u64::from(random()?))?;
        let what = format!("{}: {what}", file.display());
        row.tried();
        match Server::try_start(program, folder.path(), &["--data-dir", &argument]).await {
            Err(error) => row.finding(format!("{what}: {error:#}")),
            Ok(Start::Ended(status, output)) => {
                refused += 1;
                if status.code() != Some(2) || !output.contains(&argument) {
                    row.finding(format!("{what}: ended with {status}: {output}"));
                }
            }
            Ok(Start::Ready(server)) => {
                served += 1;
                let list = server.must("GET", MAPS, None).await?;
                let has = values(&list);
                // Every served object is intact, and no earlier one is missing.
                let wrong = has.iter().any(|(name, value)| name.starts_with('c') && name != value);
                let present = (0..count)
                    .take_while(|at| has.contains_key(format!("c{at:04}").as_str()))
                    .count();
                let total = has.keys().filter(|name| name.starts_with('c')).count();
                if wrong || present != total {
                    row.finding(format!(
                        "{what}: serves {total} objects, of which {present} without a gap"
                    ));
                }
                server.kill().await?;
            }
        }
    }
    row.note(&format!(
        "{refused} refused with the file's name, {served} served without what was damaged"
    ));
    row.done();
    Ok(())
}

/// Damages a file; returns a description.
fn damage(file: &Path, kind: usize, random: u64) -> anyhow::Result<String> {
    let mut bytes = fs::read(file)?;
    let length = bytes.len();
    let at = if length == 0 { 0 } else { usize::try_from(random)? * 7919 % length };
    let what = match kind % 8 {
        0 if length > 0 => {
            bytes[at] ^= 0x40;
            format!("a bit of byte {at} of {length}")
        }
        1 => {
            bytes.truncate(at);
            format!("cut at {at} of {length}")
        }
        2 => {
            let end = (at + 512).min(length);
            bytes[at..end].fill(0);
            format!("zeros at {at} of {length}")
        }
        3 => {
            bytes.extend([0x5a; 300]);
            "something appended".to_owned()
        }
        4 => {
            bytes.clear();
            "emptied".to_owned()
        }
        5 if length > 64 => {
            let piece: Vec<u8> = bytes[length / 2..length / 2 + 32].to_vec();
            bytes.splice(length / 3..length / 3, piece);
            "a piece put in again".to_owned()
        }
        6 => {
            fs::remove_file(file)?;
            return Ok("taken away".to_owned());
        }
        _ => {
            for byte in bytes.iter_mut().step_by(97) {
                *byte = byte.wrapping_add(1);
            }
            "a byte of each hundred".to_owned()
        }
    };
    fs::write(file, bytes)?;
    Ok(what)
}

/// The files in a folder and its subfolders, by relative path.
fn files_of(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut out = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(at) = folders.pop() {
        for entry in fs::read_dir(&at)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                folders.push(entry.path());
            // A lock file has no content, and an empty file cannot be damaged.
            } else if entry.metadata()?.len() > 0 && is_state(&entry.path()) {
                out.push(entry.path().strip_prefix(folder)?.to_owned());
            }
        }
    }
    out.sort();
    if out.is_empty() {
        bail!("{} has no files", folder.display());
    }
    Ok(out)
}

/// Whether a file holds the cluster's state or its keys; the others are regenerated at each start.
fn is_state(file: &Path) -> bool {
    let text = file.to_string_lossy();
    (text.contains("/store/") || text.contains("/pki/") || text.contains("journal"))
        && !text.ends_with("lock")
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    let status = std::process::Command::new("cp").arg("-a").arg(from).arg(to).status()?;
    anyhow::ensure!(status.success(), "cp failed");
    Ok(())
}

/// The data folder is deleted, or its disk is full.
async fn folders(program: &Path, report: &mut Report) -> anyhow::Result<()> {
    let row = report.row("faults", "deleted data folders", 4);
    let folder = tempfile::tempdir()?;
    let data = folder.path().join("data");
    let argument = data.display().to_string();
    let server = Server::start(program, folder.path(), &["--data-dir", &argument]).await?;
    fs::remove_dir_all(&data)?;
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "lost"}});
    let written = server.ask("POST", MAPS, Some(&map)).await?;
    row.check(written.status >= 500, || {
        format!("a write without a data folder: {}", written.status)
    });
    let ready = server.ask("GET", "/readyz", None).await?;
    row.check(ready.status >= 500, || format!("/readyz without a data folder: {}", ready.status));
    server.kill().await?;
    full_disk(program, folder.path(), row).await?;
    row.done();
    Ok(())
}

/// Fills a small file system: a start on it exits with 2; a running server rejects writes and
/// recovers.
async fn full_disk(
    program: &Path,
    folder: &Path,
    row: &mut crate::report::Row,
) -> anyhow::Result<()> {
    let small = folder.join("small");
    fs::create_dir(&small)?;
    fs::set_permissions(&small, fs::Permissions::from_mode(0o700))?;
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=24m,mode=700", "tmpfs"])
        .arg(&small)
        .status()?;
    if !mounted.success() {
        row.note("skipped: a full disk (no right to mount)");
        return Ok(());
    }
    let outcome = on_full_disk(program, folder, &small, row).await;
    let unmounted = std::process::Command::new("umount").arg("-l").arg(&small).status()?;
    anyhow::ensure!(unmounted.success(), "umount failed");
    outcome
}

async fn on_full_disk(
    program: &Path,
    folder: &Path,
    small: &Path,
    row: &mut crate::report::Row,
) -> anyhow::Result<()> {
    let data = small.join("data").display().to_string();
    let filler = small.join("filler");
    let fill = || -> anyhow::Result<()> {
        let mut file = fs::File::create(&filler)?;
        let block = vec![0; 4096];
        while std::io::Write::write_all(&mut file, &block).is_ok() {}
        Ok(())
    };
    fill()?;
    match Server::try_start(program, folder, &["--data-dir", &data]).await? {
        Start::Ended(status, output) => row.check(status.code() == Some(2), || {
            format!("a start on a full disk ended with {status}: {output}")
        }),
        Start::Ready(_) => row.finding("a start on a full disk serves".to_owned()),
    }
    fs::remove_file(&filler)?;
    let server = Server::start(program, folder, &["--data-dir", &data]).await?;
    fill()?;
    let mut refused = 0;
    for at in 0..200 {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("full-{at}")}, "data": {"v": "x".repeat(100_000)}});
        refused += usize::from(server.ask("POST", MAPS, Some(&map)).await?.status >= 500);
    }
    row.check(refused > 0, || "no write was refused on a full disk".to_owned());
    server.kill().await?;
    fs::remove_file(&filler)?;
    let server = Server::start(program, folder, &["--data-dir", &data]).await?;
    server.must("GET", MAPS, None).await?;
    server.kill().await
}
