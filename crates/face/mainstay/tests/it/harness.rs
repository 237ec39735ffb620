//! Test harness: a running `mainstay`, and other programs that use it.

use mainstay_client::WatchEvent;
use mainstay_testdata::skipped;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};

/// A running `mainstay up`; killed when dropped.
pub(crate) struct Up {
    child: Child,
    /// Its kubeconfig.
    pub(crate) kubeconfig: PathBuf,
    /// Its output until it was ready.
    pub(crate) output: String,
    stdout: BufReader<ChildStdout>,
}

/// The binary under test.
pub(crate) fn mainstay() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_mainstay"));
    command.env_remove("MAINSTAY_LOG").env("NO_COLOR", "1");
    command
}

impl Up {
    /// Starts `up` with these arguments, a kubeconfig in `folder` and a free port, and waits until it
    /// is ready.
    pub(crate) fn start(folder: &Path, arguments: &[&str]) -> Self {
        Self::start_at(folder, "127.0.0.1:0", arguments)
    }

    /// The same on an address.
    pub(crate) fn start_at(folder: &Path, listen: &str, arguments: &[&str]) -> Self {
        let kubeconfig = folder.join("kubeconfig");
        let mut command = mainstay();
        command.args(["up", "--listen", listen, "--kubeconfig"]).arg(&kubeconfig).args(arguments);
        Self::wait(command, kubeconfig)
    }

    /// Starts `up` with these variables and these arguments alone.
    pub(crate) fn start_with(environment: &[(&str, &str)], arguments: &[&str]) -> Self {
        let mut command = mainstay();
        command.arg("up").args(arguments).envs(environment.iter().copied());
        Self::wait(command, PathBuf::new())
    }

    fn wait(mut command: Command, kubeconfig: PathBuf) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("mainstay starts");
        let stdout = BufReader::new(child.stdout.take().expect("its output is piped"));
        // Constructed first, so that dropping it ends the process on any failure.
        let mut up = Self { child, kubeconfig, output: String::new(), stdout };
        let mut output = String::new();
        while !output.lines().last().is_some_and(|line| line.starts_with("ready")) {
            let read = up.stdout.read_line(&mut output).expect("its output is text");
            assert!(read > 0, "mainstay ended before it was ready; it said:\n{output}");
        }
        up.output = output;
        up
    }

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills it at once, as a power cut would.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("it can be killed");
        self.child.wait().expect("it ends");
    }

    /// Stops it with a signal; returns whether it succeeded, and the rest of its output.
    pub(crate) fn stop(mut self, signal: &str) -> (bool, String) {
        let sent =
            Command::new("kill").args([&format!("-{signal}"), &self.pid().to_string()]).status();
        assert!(sent.expect("kill runs").success());
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).expect("its output is text");
        let status = self.child.wait().expect("it ends");
        (status.success(), rest)
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a GET to a server without TLS; returns status and body.
pub(crate) fn http_get(address: &str, path: &str) -> (u16, String) {
    let mut stream = std::net::TcpStream::connect(address).expect("a connection");
    let head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    (status, body.to_owned())
}

/// The kubectl on PATH, if it is 1.32 or newer.
pub(crate) struct Kubectl {
    kubeconfig: PathBuf,
    cache: PathBuf,
}

impl Kubectl {
    /// Finds kubectl; without a usable one, prints that and returns `None`.
    pub(crate) fn find(kubeconfig: &Path, for_what: &str) -> Option<Self> {
        let version = Command::new("kubectl").args(["version", "--client", "-o", "json"]).output();
        let minor = version.ok().and_then(|output| {
            let version: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
            let minor = version["clientVersion"]["minor"].as_str()?;
            minor.trim_end_matches('+').parse::<u32>().ok()
        });
        if minor.is_none_or(|minor| minor < 32) {
            skipped(&format!("{for_what}: no kubectl of 1.32 or newer on PATH"));
            return None;
        }
        let cache = kubeconfig.with_extension("cache");
        Some(Self { kubeconfig: kubeconfig.to_owned(), cache })
    }

    /// A call, not yet started.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("kubectl");
        command
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .arg("--cache-dir")
            .arg(&self.cache)
            .args(arguments)
            .env("KUBECTL_EXTERNAL_DIFF", "diff -u -N");
        command
    }

    /// Runs a call with `input` as its standard input.
    pub(crate) fn output(&self, arguments: &[&str], input: &str) -> Output {
        let mut child = self
            .command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("kubectl starts");
        let mut stdin = child.stdin.take().expect("its input is piped");
        // kubectl may exit before it has read its input; its exit code decides.
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        child.wait_with_output().expect("kubectl ends")
    }

    /// Runs a call that must succeed, and returns what it printed.
    pub(crate) fn run(&self, arguments: &[&str], input: &str) -> String {
        let output = self.output(arguments, input);
        let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            output.status.success(),
            "kubectl {} failed:\n{stdout}{}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr)
        );
        stdout
    }

    /// Runs a call that must fail, and returns what it printed to standard error.
    pub(crate) fn refused(&self, arguments: &[&str], input: &str) -> String {
        let output = self.output(arguments, input);
        assert!(!output.status.success(), "kubectl {} should have failed", arguments.join(" "));
        String::from_utf8_lossy(&output.stderr).into_owned()
    }
}

/// A client with a TLS connection of its own.
pub(crate) async fn tls_cluster(kubeconfig: &Path) -> mainstay_client::Cluster {
    mainstay_client::Cluster::new(tls_client(kubeconfig).await)
}

/// A kube-rs client of its own connection, over TLS.
pub(crate) async fn tls_client(kubeconfig: &Path) -> kube::Client {
    // Another test of this process may have installed the same provider before.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let file = kube::config::Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    let options = kube::config::KubeConfigOptions::default();
    let config =
        kube::Config::from_custom_kubeconfig(file, &options).await.expect("a usable kubeconfig");
    kube::Client::try_from(config).expect("a client")
}

/// How long a cluster may take for what a test waits for; several times what an idle machine needs.
const WAIT_TIMEOUT: std::time::Duration = std::time::Duration::from_mins(4);

/// Watches objects of a kind until `found` returns a value for one.
pub(crate) async fn until<T>(
    cluster: &mainstay_client::Cluster,
    resource: &mainstay_object::Resource,
    namespace: Option<&str>,
    mut found: impl FnMut(&mainstay_object::Object) -> Option<T>,
) -> T {
    let mut last = String::new();
    let look = async {
        loop {
            let list = cluster
                .list(resource, namespace, &mainstay_client::ObjectList::default())
                .await
                .expect("a list");
            for object in &list.items {
                if let Some(value) = found(object) {
                    return value;
                }
                last = format!(
                    "{}: {:?}",
                    object.key(),
                    object.get(&["status"]).map(ToString::to_string)
                );
            }
            let mut selection = mainstay_client::Selection::all(resource.clone());
            if let Some(namespace) = namespace {
                selection = selection.namespace(namespace);
            }
            let mut watch =
                cluster.watch(&selection, &list.resource_version).await.expect("a watch");
            while let Some(event) = watch.next().await {
                if let WatchEvent::Added(object) | WatchEvent::Modified(object) =
                    event.expect("an event")
                {
                    if let Some(value) = found(&object) {
                        return value;
                    }
                    last = format!(
                        "{}: {:?}",
                        object.key(),
                        object.get(&["status"]).map(ToString::to_string)
                    );
                }
            }
        }
    };
    let found = tokio::time::timeout(WAIT_TIMEOUT, look).await;
    found.unwrap_or_else(|_| panic!("it did not happen within {WAIT_TIMEOUT:?}; last seen: {last}"))
}

/// Returns once no object has the name.
pub(crate) async fn until_gone(
    cluster: &mainstay_client::Cluster,
    resource: &mainstay_object::Resource,
    namespace: &str,
    name: &str,
) {
    let look = async {
        while let Some(object) =
            cluster.find(resource, Some(namespace), name).await.expect("an answer")
        {
            let selection = mainstay_client::Selection::all(resource.clone())
                .namespace(namespace)
                .fields(format!("metadata.name={name}"));
            let from = object.resource_version();
            let mut watch = cluster.watch(&selection, from).await.expect("a watch");
            watch.next().await;
        }
    };
    let gone = tokio::time::timeout(WAIT_TIMEOUT, look).await;
    assert!(gone.is_ok(), "{namespace}/{name} is still there after {WAIT_TIMEOUT:?}");
}
