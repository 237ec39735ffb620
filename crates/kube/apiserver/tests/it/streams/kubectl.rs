//! The real kubectl with in-process pods, over the TLS port.

use super::client::Shell;
use super::forward::Ports;
use super::{pod, running, set_container_status};
use crate::harness::Api;
use mainstay_auth::pki::Pki;
use mainstay_clock::Clock;
use mainstay_store::{Options, Store};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// Whether the PATH has a kubectl that tries WebSocket first.
fn has_kubectl() -> bool {
    let version = Command::new("kubectl").args(["version", "--client", "-o", "json"]).output();
    let minor = version.ok().and_then(|output| {
        let version: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
        version["clientVersion"]["minor"].as_str()?.trim_end_matches('+').parse::<u32>().ok()
    });
    minor.is_some_and(|minor| minor >= 32)
}

/// The environment variables that make kubectl use SPDY, or WebSocket.
const SPDY: [(&str, &str); 2] =
    [("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", "false"), ("KUBECTL_PORT_FORWARD_WEBSOCKETS", "false")];
const WEBSOCKET: [(&str, &str); 2] =
    [("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", "true"), ("KUBECTL_PORT_FORWARD_WEBSOCKETS", "true")];

/// Exit code, stdout and stderr of a call.
async fn call(
    kubeconfig: PathBuf,
    arguments: &[&str],
    input: Option<PathBuf>,
    environment: [(&'static str, &'static str); 2],
) -> (i32, String, String) {
    let mut command = Command::new("kubectl");
    command.envs(environment).arg("--kubeconfig").arg(kubeconfig).args(arguments);
    command.stdin(input.map_or_else(Stdio::null, |file| std::fs::File::open(file).unwrap().into()));
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().unwrap(), text(&output.stdout), text(&output.stderr))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kubectl_streams_to_in_process_pods() {
    if !has_kubectl() {
        eprintln!(
            "skipped: kubectl exec on pods with handlers: no kubectl of 1.32 or newer on PATH"
        );
        return;
    }
    let clock = Clock::system();
    let pki = Pki::ephemeral(&clock, &[]).unwrap();
    let authenticator = pki.authenticator(clock).unwrap();
    let api = Api::with(Store::in_memory(Options::new(clock)), clock, authenticator).await;
    for name in ["p", "ports", "sim"] {
        pod(&api, name, &["c"], true).await;
        set_container_status(&api, name, running()).await;
    }
    api.server.add_in_process_pod("default", "p", Arc::new(Shell));
    api.server.add_in_process_pod("default", "ports", Arc::new(Ports));
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let (server, stop) = (api.server.clone(), api.stop.clone());
    let tls = pki.server_config().unwrap();
    let port = tokio::spawn(async move { server.serve(listener, tls, stop).await });
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    pki.write_kubeconfig(&file("kubeconfig"), &format!("https://{address}"), "test").unwrap();
    let input = "line\n".repeat(50_000);
    std::fs::write(file("input"), &input).unwrap();

    for environment in [WEBSOCKET, SPDY] {
        let run = |arguments: &'static [&str], input| {
            call(file("kubeconfig"), arguments, input, environment)
        };
        let output = run(&["exec", "p", "--", "say", "a b"], None).await;
        assert_eq!(output, (0, "a b".to_owned(), "done".to_owned()));
        let (code, _, error) = run(&["exec", "p", "--", "exit", "3"], None).await;
        assert_eq!((code, error.trim()), (3, "command terminated with exit code 3"));
        let (code, output, error) =
            run(&["exec", "-i", "p", "--", "cat"], Some(file("input"))).await;
        assert_eq!((code, output == input), (0, true), "{error}");
        for (arguments, what) in [
            (&["exec", "sim", "--", "ls"][..], "exec is not supported: the nodes of this cluster"),
            (&["logs", "sim"], "log is not supported: the nodes of this cluster"),
            (
                &["port-forward", "sim", "18080:80"],
                "portforward is not supported: the nodes of this",
            ),
            (&["exec", "p", "--", "none"], "no such command"),
        ] {
            let (code, _, error) = run(arguments, None).await;
            assert_eq!((code, error.contains(what)), (1, true), "{arguments:?}: {error}");
        }
        check_port_forward(&file("kubeconfig"), environment).await;
    }
    api.stop.cancel();
    port.await.unwrap();
}

/// Forwards ports, and sends requests to the servers behind them.
async fn check_port_forward(kubeconfig: &Path, environment: [(&'static str, &'static str); 2]) {
    let mut command = tokio::process::Command::new("kubectl");
    command.envs(environment).arg("--kubeconfig").arg(kubeconfig);
    command.args(["port-forward", "ports", ":7", ":13", ":1234"]).kill_on_drop(true);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut ports = std::collections::HashMap::new();
    while ports.len() < 3 {
        let line = lines.next_line().await.unwrap().expect("kubectl says where it listens");
        // kubectl prints a line for both address families.
        if let Some(rest) = line.strip_prefix("Forwarding from 127.0.0.1:") {
            let (from, to) = rest.split_once(" -> ").unwrap();
            ports.insert(to.to_owned(), from.parse::<u16>().unwrap());
        }
    }
    let connect = async |port: &str| TcpStream::connect(("127.0.0.1", ports[port])).await.unwrap();
    let mut output = String::new();
    connect("13").await.read_to_string(&mut output).await.unwrap();
    assert_eq!(output, "noon");
    let (mut one, mut other) = (connect("7").await, connect("7").await);
    let long = "echo".repeat(100_000);
    for stream in [&mut one, &mut other] {
        let (mut source, mut sink) = stream.split();
        let sending = async {
            sink.write_all(long.as_bytes()).await.unwrap();
            sink.shutdown().await.unwrap();
        };
        let mut echoed = String::new();
        let (read, ()) = tokio::join!(source.read_to_string(&mut echoed), sending);
        read.unwrap();
        assert_eq!(echoed.len(), long.len());
    }
    // A failed connection is reported, and ends kubectl.
    drop(connect("1234").await);
    let mut error = String::new();
    child.stderr.take().unwrap().read_to_string(&mut error).await.unwrap();
    assert!(error.contains("nobody is at 1234"), "{error}");
    assert_eq!(child.wait().await.unwrap().code(), Some(1));
}
