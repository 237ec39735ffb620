//! The attacked process: started, observed through `/proc`, and killed.

use crate::wire::{self, Address, Identity, Response};
use anyhow::{Context as _, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::{Value, json};
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

/// The timeout for a start, and for a response to the administrator.
pub(crate) const RESPONSE_TIMEOUT: Duration = Duration::from_secs(20);
/// The Secret's value, which no attacker may ever read.
pub(crate) const CANARY: &str = "canary-4f1c0e7a9b";
/// The namespace that the attacker may not access.
pub(crate) const VICTIM_NAMESPACE: &str = "victim";
/// The namespace in which the attacker is `admin`.
pub(crate) const ATTACKER_NAMESPACE: &str = "attacker";

/// A running `mainstay up`.
pub(crate) struct Server {
    child: Child,
    /// The address of the API.
    pub(crate) api: Address,
    /// Other ports, by the word that announces them (`registry`, `grpc`).
    pub(crate) ports: Vec<(String, String)>,
    roots: Arc<RootCertStore>,
    admin: Identity,
    _output: tokio::task::JoinHandle<()>,
}

/// The outcome of a start.
pub(crate) enum Start {
    /// It serves.
    Ready(Box<Server>),
    /// It exited before it served: exit status and output.
    Ended(ExitStatus, String),
}

impl Server {
    /// Starts the program on a free port with a kubeconfig in `folder`.
    pub(crate) async fn start(
        program: &Path,
        folder: &Path,
        arguments: &[&str],
    ) -> anyhow::Result<Self> {
        match Self::try_start(program, folder, arguments).await? {
            Start::Ready(server) => Ok(*server),
            Start::Ended(status, output) => bail!("the program ended with {status}: {output}"),
        }
    }

    /// The same, where a failed start is a valid outcome.
    pub(crate) async fn try_start(
        program: &Path,
        folder: &Path,
        arguments: &[&str],
    ) -> anyhow::Result<Start> {
        let kubeconfig = folder.join("kubeconfig");
        let mut child = command(program, &kubeconfig, arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("start the program")?;
        let mut lines = BufReader::new(child.stdout.take().context("no output")?).lines();
        let mut stderr = child.stderr.take().context("no error output")?;
        let errors = tokio::spawn(async move {
            let mut text = Vec::new();
            let _ = tokio::io::AsyncReadExt::read_to_end(&mut stderr, &mut text).await;
            String::from_utf8_lossy(&text).into_owned()
        });
        let mut ports = Vec::new();
        let mut output = String::new();
        let catalogs = arguments.contains(&"--catalog");
        let ready = timeout(RESPONSE_TIMEOUT, async {
            let mut ready = false;
            while let Some(line) = lines.next_line().await? {
                let mut words = line.split_whitespace();
                if let (Some(word), Some(at)) = (words.next(), words.next()) {
                    ports.push((word.to_owned(), at.to_owned()));
                    ready |= word == "ready";
                    if ready && (!catalogs || word == "grpc") {
                        return anyhow::Ok(true);
                    }
                }
                output.push_str(&line);
                output.push('\n');
            }
            Ok(false)
        })
        .await;
        let Ok(ready) = ready else { bail!("the program hangs at its start; it said:\n{output}") };
        if !ready? {
            let status = timeout(RESPONSE_TIMEOUT, child.wait())
                .await
                .context("the program does not end")??;
            return Ok(Start::Ended(status, output + &errors.await?));
        }
        let (api, roots, admin) = read_kubeconfig(&kubeconfig)?;
        Ok(Start::Ready(Box::new(Self {
            child,
            api,
            ports,
            roots,
            admin,
            _output: tokio::spawn(drain(lines)),
        })))
    }

    /// The address of another port.
    pub(crate) fn port(&self, word: &str) -> anyhow::Result<Address> {
        let (_, at) = self
            .ports
            .iter()
            .find(|(known, _)| known == word)
            .with_context(|| format!("the program announced no {word}"))?;
        Address::parse(at)
    }

    /// The CA certificates that verify the server's certificate.
    pub(crate) fn roots(&self) -> Arc<RootCertStore> {
        Arc::clone(&self.roots)
    }

    /// The administrator's identity.
    pub(crate) fn admin(&self) -> Identity {
        self.admin.clone()
    }

    /// Connects to the API with an identity.
    pub(crate) async fn connect(&self, identity: &Identity) -> anyhow::Result<wire::Connection> {
        wire::Connection::tls(&self.api, self.roots(), identity).await
    }

    /// Sends one request as administrator on a new connection.
    pub(crate) async fn ask(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<Response> {
        let media =
            if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
        let body = body.map(Value::to_string).unwrap_or_default();
        let asked = async {
            let mut connection = self.connect(&self.admin).await?;
            connection.request(method, path, &[("content-type", media)], body.as_bytes()).await
        };
        timeout(RESPONSE_TIMEOUT, asked)
            .await
            .with_context(|| format!("the administrator's {method} {path} hangs"))?
            .with_context(|| format!("the administrator's {method} {path}"))
    }

    /// The same; any status except success is an error.
    pub(crate) async fn must(
        &self,
        method: &str,
        path: &str,
        body: Option<&Value>,
    ) -> anyhow::Result<Value> {
        let response = self.ask(method, path, body).await?;
        if !(200..300).contains(&response.status) {
            bail!("{method} {path}: {} {}", response.status, response.text());
        }
        serde_json::from_slice(&response.body).context("a body that is no JSON")
    }

    /// Creates the victim's namespace with its Secret and the attacker's namespace; returns a token
    /// of a ServiceAccount that is `admin` of the latter and nothing else.
    pub(crate) async fn restricted_user(&self) -> anyhow::Result<Identity> {
        for name in [VICTIM_NAMESPACE, ATTACKER_NAMESPACE] {
            let namespace =
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            self.must("POST", "/api/v1/namespaces", Some(&namespace)).await?;
        }
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "canary"},
            "stringData": {"value": CANARY},
        });
        self.must("POST", &format!("/api/v1/namespaces/{VICTIM_NAMESPACE}/secrets"), Some(&secret))
            .await?;
        let account =
            json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "mallory"}});
        let accounts = format!("/api/v1/namespaces/{ATTACKER_NAMESPACE}/serviceaccounts");
        self.must("POST", &accounts, Some(&account)).await?;
        let bindings = format!(
            "/apis/rbac.authorization.k8s.io/v1/namespaces/{ATTACKER_NAMESPACE}/rolebindings"
        );
        let binding = json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": "mallory"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
            "subjects": [{"kind": "ServiceAccount", "name": "mallory", "namespace": ATTACKER_NAMESPACE}],
        });
        self.must("POST", &bindings, Some(&binding)).await?;
        let token = self.token(ATTACKER_NAMESPACE, "mallory", &json!({})).await?;
        Ok(Identity::Token(token))
    }

    /// A token of a ServiceAccount.
    pub(crate) async fn token(
        &self,
        namespace: &str,
        account: &str,
        spec: &Value,
    ) -> anyhow::Result<String> {
        let request =
            json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec});
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token");
        let token_request = self.must("POST", &path, Some(&request)).await?;
        Ok(token_request["status"]["token"].as_str().context("no token")?.to_owned())
    }

    /// The process id.
    pub(crate) fn pid(&self) -> anyhow::Result<u32> {
        self.child.id().context("the process has ended")
    }

    /// A size of /proc/PID/status in bytes, such as `VmRSS` or `VmHWM`.
    pub(crate) fn memory(&self, field: &str) -> anyhow::Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid()?))?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))
            .with_context(|| format!("no {field}"))?;
        let kib: u64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(kib * 1024)
    }

    /// Resets the kernel's peak memory counter.
    pub(crate) fn reset_peak(&self) -> anyhow::Result<()> {
        std::fs::write(format!("/proc/{}/clear_refs", self.pid()?), "5").context("reset the peak")
    }

    /// The number of open files and sockets.
    pub(crate) fn open_files(&self) -> anyhow::Result<usize> {
        Ok(std::fs::read_dir(format!("/proc/{}/fd", self.pid()?))?.count())
    }

    /// The number of threads.
    pub(crate) fn threads(&self) -> anyhow::Result<usize> {
        Ok(std::fs::read_dir(format!("/proc/{}/task", self.pid()?))?.count())
    }

    /// The processor time used, in milliseconds.
    pub(crate) fn processor_time(&self) -> anyhow::Result<u64> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid()?))?;
        let (_, fields) = stat.rsplit_once(')').context("an odd stat")?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let ticks: u64 =
            [11, 12].iter().filter_map(|at| fields.get(*at)?.parse::<u64>().ok()).sum();
        // A tick is a hundredth of a second on all relevant Linux systems.
        Ok(ticks * 10)
    }

    /// Checks that the process runs and serves the administrator.
    pub(crate) async fn alive(&mut self) -> anyhow::Result<()> {
        if let Some(status) = self.child.try_wait()? {
            bail!("the process has ended with {status}");
        }
        let ready = self.ask("GET", "/readyz", None).await?;
        if ready.status != 200 {
            bail!("/readyz says {} {}", ready.status, ready.text());
        }
        Ok(())
    }

    /// Kills the process, as a power failure would.
    pub(crate) async fn kill(mut self) -> anyhow::Result<()> {
        self.child.kill().await.context("kill the program")
    }

    /// Terminates the process.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        let pid = i32::try_from(self.pid()?)?;
        let pid = rustix::process::Pid::from_raw(pid).context("no process")?;
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
        let status =
            timeout(RESPONSE_TIMEOUT, self.child.wait()).await.context("it does not stop")??;
        if !status.success() {
            bail!("it stopped with {status}");
        }
        Ok(())
    }
}

/// The command line of `mainstay up`.
pub(crate) fn command(program: &Path, kubeconfig: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command
        .args(["up", "--listen", "127.0.0.1:0", "--kubeconfig"])
        .arg(kubeconfig)
        .args(arguments)
        .env("NO_COLOR", "1")
        .stdin(Stdio::null());
    command
}

async fn drain(mut lines: tokio::io::Lines<BufReader<ChildStdout>>) {
    while let Ok(Some(_)) = lines.next_line().await {}
}

fn read_kubeconfig(file: &Path) -> anyhow::Result<(Address, Arc<RootCertStore>, Identity)> {
    let bytes = std::fs::read(file).context("read the kubeconfig")?;
    let config = mainstay_yaml::one(&bytes, &mainstay_yaml::Options::default())
        .map_err(|error| anyhow::anyhow!("{error}"))?;
    let cluster = &config["clusters"][0]["cluster"];
    let user = &config["users"][0]["user"];
    let decode = |value: &Value| -> anyhow::Result<Vec<u8>> {
        Ok(STANDARD.decode(value.as_str().context("no data in the kubeconfig")?)?)
    };
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&decode(&cluster["certificate-authority-data"])?)?)?;
    let chain = CertificateDer::from_pem_slice(&decode(&user["client-certificate-data"])?)?;
    let key = PrivateKeyDer::from_pem_slice(&decode(&user["client-key-data"])?)?;
    let api = Address::parse(cluster["server"].as_str().context("no server")?)?;
    Ok((api, Arc::new(roots), Identity::Certificate(Arc::new((vec![chain], key)))))
}
