//! Servers as processes: start, readiness and stop.
//!
//! Everything is measured as a client sees it: the kubeconfig appears, `/readyz` succeeds over TLS,
//! and the process has exited. Our program's output is not read. The program that starts a real
//! control plane prints the processes that it has started ([`RealControlPlane`]).

use crate::api::Api;
use crate::process::Usage;
use anyhow::{Context, Result, bail};
use mainstay_clock::Clock;
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

/// The interval between two polls of a process.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

/// The timeout for a process to start or to stop.
const TIMEOUT: Duration = Duration::from_mins(1);

/// The program to measure.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Program {
    /// The `mainstay` program to measure; by default the one beside this program.
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
    /// A folder on the disk to measure; by default the one for temporary files.
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

impl Program {
    /// The path of the program.
    ///
    /// # Errors
    /// The program does not exist.
    pub(crate) fn path(&self) -> Result<PathBuf> {
        let path = if let Some(path) = &self.binary {
            path.clone()
        } else {
            let own = std::env::current_exe().context("finding out where this program is")?;
            own.with_file_name("mainstay")
        };
        anyhow::ensure!(
            path.is_file(),
            "there is no program at {}: build it with `cargo build --release -p mainstay`, or name it with --binary",
            path.display()
        );
        Ok(path)
    }

    /// A new folder on the disk to measure, removed when dropped.
    pub(crate) fn folder(&self) -> Result<tempfile::TempDir> {
        let folder = match &self.dir {
            Some(folder) => tempfile::tempdir_in(folder),
            None => tempfile::tempdir(),
        };
        folder.context("making a folder to work in")
    }
}

/// The storage of a cluster.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Data<'a> {
    /// In memory only.
    Memory,
    /// A data folder; every acknowledged write is durable.
    Folder(&'a Path),
}

/// A running `mainstay up`; killed when dropped.
pub(crate) struct MainstayServer {
    process: Process,
    /// A client with an open TLS connection.
    pub(crate) api: Api,
    /// The time from the start of the program until `/readyz` succeeded.
    pub(crate) ready_in: Duration,
}

impl MainstayServer {
    /// Starts `program` with its kubeconfig in `work`, and waits until `/readyz` succeeds.
    pub(crate) async fn start(
        program: &Path,
        data: Data<'_>,
        catalog: Option<&Path>,
        work: &Path,
    ) -> Result<Self> {
        let mut arguments = Vec::new();
        if let Some(catalog) = catalog {
            let mut argument = OsString::from("sample=");
            argument.push(catalog);
            arguments.extend([OsString::from("--catalog"), argument]);
        }
        Self::start_with(program, data, &arguments, work).await
    }

    /// The same with further arguments of `mainstay up`.
    pub(crate) async fn start_with(
        program: &Path,
        data: Data<'_>,
        arguments: &[OsString],
        work: &Path,
    ) -> Result<Self> {
        let kubeconfig = work.join("kubeconfig");
        match std::fs::remove_file(&kubeconfig) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(error).context("removing the last run's kubeconfig");
            }
            _ => {}
        }
        let mut command = Command::new(program);
        command.args(["up", "--listen", "127.0.0.1:0", "--kubeconfig"]).arg(&kubeconfig);
        match data {
            Data::Memory => command.arg("--in-memory"),
            Data::Folder(folder) => command.arg("--data-dir").arg(folder),
        };
        command.args(arguments);
        let clock = Clock::system();
        let start = clock.elapsed();
        let mut process = Process::start(&mut command)?;
        let mut api = None;
        loop {
            if api.is_none() {
                // An error means that the kubeconfig is not complete yet.
                api = Api::connect(&kubeconfig).await.ok();
            }
            if let Some(api) = &api
                && green(api).await
            {
                break;
            }
            if let Some(status) = process.0.try_wait().context("looking after mainstay")? {
                bail!("mainstay ended before it was ready: {status}");
            }
            let waited = clock.elapsed().saturating_sub(start);
            anyhow::ensure!(waited < TIMEOUT, "mainstay was not ready after {TIMEOUT:?}");
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        let ready_in = clock.elapsed().saturating_sub(start);
        let api = api.context("ready without a client")?;
        Ok(Self { process, api, ready_in })
    }

    /// The memory and processor time of the process.
    pub(crate) fn usage(&self) -> Result<Usage> {
        Usage::of(&[self.process.0.id()])
    }

    /// The process id.
    pub(crate) fn process(&self) -> u32 {
        self.process.0.id()
    }

    /// Sends SIGTERM; returns the time until the process has exited, starting `kill` included.
    pub(crate) async fn stop(mut self) -> Result<Duration> {
        let clock = Clock::system();
        let start = clock.elapsed();
        terminate(&self.process)?;
        let status = self.process.ended().await?;
        anyhow::ensure!(status.success(), "mainstay did not stop well: {status}");
        Ok(clock.elapsed().saturating_sub(start))
    }
}

/// A second `mainstay` process that uses a server; killed when dropped.
pub(crate) struct SideProcess(Process);

impl SideProcess {
    /// Starts the process.
    pub(crate) fn start(program: &Path, arguments: &[OsString]) -> Result<Self> {
        Ok(Self(Process::start(Command::new(program).args(arguments))?))
    }

    /// The process id.
    pub(crate) fn process(&self) -> u32 {
        self.0.0.id()
    }

    /// Sends SIGTERM and waits for the process.
    pub(crate) async fn stop(mut self) -> Result<()> {
        terminate(&self.0)?;
        let status = self.0.ended().await?;
        anyhow::ensure!(status.success(), "a program did not stop well: {status}");
        Ok(())
    }
}

async fn green(api: &Api) -> bool {
    match http::Request::get("/readyz").body(Vec::new()) {
        Ok(request) => api.client.request_text(request).await.is_ok(),
        Err(_) => false,
    }
}

/// A real control plane, started for one round; terminated when dropped.
pub(crate) struct RealControlPlane {
    process: Process,
    pub(crate) api: Api,
    /// The path of its kubeconfig.
    pub(crate) kubeconfig: PathBuf,
    /// The time from the start of the program until `/readyz` succeeded.
    pub(crate) ready_in: Duration,
    /// The ids of all its processes: its store and its API server first.
    pub(crate) processes: Vec<u32>,
    /// The rest of its output: closing the pipe would end the program when it prints.
    _printed: BufReader<ChildStdout>,
}

impl RealControlPlane {
    /// Starts `PROGRAM --dir FOLDER --controllers=false`. Once everything is ready, it must print
    /// `KUBECONFIG=FILE` and a line `NAME pid NUMBER` for each process, and run until SIGTERM.
    pub(crate) async fn start(program: &Path, folder: &Path) -> Result<Self> {
        Self::start_with(program, folder, &["--controllers=false"], "kube-apiserver").await
    }

    /// The same with other arguments after `--dir FOLDER`; `last` is the name of the process in the
    /// last printed line.
    pub(crate) async fn start_with(
        program: &Path,
        folder: &Path,
        arguments: &[&str],
        last: &str,
    ) -> Result<Self> {
        let mut command = Command::new(program);
        command.arg("--dir").arg(folder).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let clock = Clock::system();
        let start = clock.elapsed();
        let mut child = command.spawn().with_context(|| format!("starting {command:?}"))?;
        let printed = child.stdout.take().context("a program without output")?;
        let process = Process(child);
        let mut kubeconfig = None;
        let mut processes = Vec::new();
        let mut printed = BufReader::new(printed);
        for line in printed.by_ref().lines() {
            let line = line.context("reading what the real control plane prints")?;
            if let Some(file) = line.strip_prefix("KUBECONFIG=") {
                kubeconfig = Some(PathBuf::from(file));
            } else if let Some((name, id)) = line.split_once(" pid ") {
                processes.push(id.trim().parse().with_context(|| format!("reading {line:?}"))?);
                if name == last {
                    break;
                }
            }
        }
        let kubeconfig = kubeconfig.context("the real control plane did not become ready")?;
        let api = Api::connect(&kubeconfig).await?;
        // As for our own program, a client decides when the server is ready.
        while !green(&api).await {
            let waited = clock.elapsed().saturating_sub(start);
            anyhow::ensure!(waited < TIMEOUT, "the real API was not ready after {TIMEOUT:?}");
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        let ready_in = clock.elapsed().saturating_sub(start);
        Ok(Self { process, api, kubeconfig, ready_in, processes, _printed: printed })
    }

    /// Stops it and waits until it has exited.
    pub(crate) async fn stop(mut self) -> Result<()> {
        terminate(&self.process)?;
        self.process.ended().await?;
        Ok(())
    }
}

impl Drop for RealControlPlane {
    fn drop(&mut self) {
        // It stops its own processes, which would survive a kill.
        if matches!(self.process.0.try_wait(), Ok(None)) && terminate(&self.process).is_ok() {
            let _ = self.process.0.wait();
        }
    }
}

/// Sends SIGTERM.
fn terminate(process: &Process) -> Result<()> {
    let id = process.0.id().to_string();
    let sent = Command::new("kill").args(["-TERM", &id]).status().context("running kill")?;
    anyhow::ensure!(sent.success(), "kill could not send SIGTERM");
    Ok(())
}

/// Runs `mainstay demo --exit`; returns the time until it has exited.
pub(crate) async fn demo(program: &Path) -> Result<Duration> {
    let clock = Clock::system();
    let start = clock.elapsed();
    let mut process = Process::start(Command::new(program).args(["demo", "--exit"]))?;
    let status = process.ended().await?;
    anyhow::ensure!(status.success(), "the demo failed: {status}");
    Ok(clock.elapsed().saturating_sub(start))
}

/// A process that is killed when its owner is dropped.
struct Process(Child);

impl Process {
    /// Standard error stays visible; standard output is discarded.
    fn start(command: &mut Command) -> Result<Self> {
        let command = command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.spawn().with_context(|| format!("starting {command:?}"))?;
        Ok(Self(child))
    }

    async fn ended(&mut self) -> Result<ExitStatus> {
        let clock = Clock::system();
        let start = clock.elapsed();
        loop {
            if let Some(status) = self.0.try_wait().context("waiting for mainstay to end")? {
                return Ok(status);
            }
            let waited = clock.elapsed().saturating_sub(start);
            anyhow::ensure!(waited < TIMEOUT, "mainstay still ran after {TIMEOUT:?}");
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only if the process has exited already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
