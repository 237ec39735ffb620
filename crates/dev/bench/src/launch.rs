//! Servers as processes: started, waited for from outside, asked to stop.
//!
//! Everything is seen as a client sees it. The kubeconfig appears, `/readyz` is asked over TLS until
//! it is green, and the process is gone when it is gone; what our program prints is not read. The
//! program that starts a real control plane says what it has started ([`Peer`]).

use crate::api::Api;
use crate::process::Usage;
use anyhow::{Context, Result, bail};
use mainstay_clock::Clock;
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::time::Duration;

/// Between two looks at a process.
const PAUSE: Duration = Duration::from_millis(2);

/// How long a process may take to start or to end before the measurement is given up.
const PATIENCE: Duration = Duration::from_mins(1);

/// Which program is started.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Program {
    /// The `mainstay` to measure; by default the one beside this program.
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
    /// A folder on the disk to measure; by default the one for temporary files.
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

impl Program {
    /// Where the program is.
    ///
    /// # Errors
    /// If there is none.
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

    /// A new folder on the disk to measure, gone when dropped.
    pub(crate) fn folder(&self) -> Result<tempfile::TempDir> {
        let folder = match &self.dir {
            Some(folder) => tempfile::tempdir_in(folder),
            None => tempfile::tempdir(),
        };
        folder.context("making a folder to work in")
    }
}

/// Where a cluster lives.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Data<'a> {
    /// Nowhere.
    Memory,
    /// In a folder, every answered write safe on the disk.
    Folder(&'a Path),
}

/// A running `mainstay up`; killed when dropped.
pub(crate) struct Launched {
    process: Process,
    /// A client over TLS whose connection is open.
    pub(crate) api: Api,
    /// From the start of the program until `/readyz` was green.
    pub(crate) ready_in: Duration,
}

impl Launched {
    /// Starts `program` with its kubeconfig in `work` and waits until `/readyz` is green.
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
                // An error means that there is no complete kubeconfig yet.
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
            anyhow::ensure!(waited < PATIENCE, "mainstay was not ready after {PATIENCE:?}");
            tokio::time::sleep(PAUSE).await;
        }
        let ready_in = clock.elapsed().saturating_sub(start);
        let api = api.context("ready without a client")?;
        Ok(Self { process, api, ready_in })
    }

    /// What the process has used.
    pub(crate) fn usage(&self) -> Result<Usage> {
        Usage::of(&[self.process.0.id()])
    }

    /// Its process id.
    pub(crate) fn process(&self) -> u32 {
        self.process.0.id()
    }

    /// Sends SIGTERM and gives the time until the process was gone, starting `kill` included.
    pub(crate) async fn stop(mut self) -> Result<Duration> {
        let clock = Clock::system();
        let start = clock.elapsed();
        terminate(&self.process)?;
        let status = self.process.ended().await?;
        anyhow::ensure!(status.success(), "mainstay did not stop well: {status}");
        Ok(clock.elapsed().saturating_sub(start))
    }
}

/// A program of ours that works beside a server; killed when dropped.
pub(crate) struct Companion(Process);

impl Companion {
    /// Starts it.
    pub(crate) fn start(program: &Path, arguments: &[OsString]) -> Result<Self> {
        Ok(Self(Process::start(Command::new(program).args(arguments))?))
    }

    /// Its process id.
    pub(crate) fn process(&self) -> u32 {
        self.0.0.id()
    }

    /// Sends SIGTERM and waits until it is gone.
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

/// A real control plane, started for one round; asked to stop when dropped.
pub(crate) struct Peer {
    process: Process,
    pub(crate) api: Api,
    /// How to reach it, as whom.
    pub(crate) kubeconfig: PathBuf,
    /// From the start of the program until `/readyz` was green.
    pub(crate) ready_in: Duration,
    /// Processes of all that it has started, its store and its API server first.
    pub(crate) processes: Vec<u32>,
    /// What else it prints: if nobody could read that, printing would end it.
    _printed: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts `PROGRAM --dir FOLDER --controllers=false`. When all is ready it is to print
    /// `KUBECONFIG=FILE` and a line `NAME pid NUMBER` for each process, and to run until SIGTERM.
    pub(crate) async fn start(program: &Path, folder: &Path) -> Result<Self> {
        Self::start_with(program, folder, &["--controllers=false"], "kube-apiserver").await
    }

    /// The same with other arguments behind `--dir FOLDER`; `last` is the name of the process that
    /// is printed last.
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
        // What it says is believed when a client sees it too, as with our own program.
        while !green(&api).await {
            let waited = clock.elapsed().saturating_sub(start);
            anyhow::ensure!(waited < PATIENCE, "the real API was not ready after {PATIENCE:?}");
            tokio::time::sleep(PAUSE).await;
        }
        let ready_in = clock.elapsed().saturating_sub(start);
        Ok(Self { process, api, kubeconfig, ready_in, processes, _printed: printed })
    }

    /// Ends it and waits until it is gone.
    pub(crate) async fn stop(mut self) -> Result<()> {
        terminate(&self.process)?;
        self.process.ended().await?;
        Ok(())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It stops its own processes, which a kill would leave behind.
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

/// Runs `mainstay demo --exit` and gives the time until it had ended.
pub(crate) async fn demo(program: &Path) -> Result<Duration> {
    let clock = Clock::system();
    let start = clock.elapsed();
    let mut process = Process::start(Command::new(program).args(["demo", "--exit"]))?;
    let status = process.ended().await?;
    anyhow::ensure!(status.success(), "the demo failed: {status}");
    Ok(clock.elapsed().saturating_sub(start))
}

/// A process that does not outlive its owner.
struct Process(Child);

impl Process {
    /// Errors of the process stay visible, all else it says is dropped.
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
            anyhow::ensure!(waited < PATIENCE, "mainstay still ran after {PATIENCE:?}");
            tokio::time::sleep(PAUSE).await;
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both fail only if it has ended already, which is what is wanted.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
