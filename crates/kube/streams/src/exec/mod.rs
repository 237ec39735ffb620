//! `pods/exec` and `pods/attach`: a process and its channels, over WebSocket or SPDY.

mod spdy;
mod websocket;

use super::options;
use super::upgrade::{EndpointForms, Known, Way};
use super::{Exit, NativePod, Process, TerminalSize, no_process};
use crate::StreamRequest;
use bytes::Bytes;
use mainstay_http::response::ApiResponse;
use mainstay_object::{Object, Status};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::sync::mpsc;

const V5: &str = "v5.channel.k8s.io";
const V4: &str = "v4.channel.k8s.io";
const V4_BASE64: &str = "v4.base64.channel.k8s.io";
const V3: &str = "v3.channel.k8s.io";
const V2: &str = "v2.channel.k8s.io";
const V1: &str = "channel.k8s.io";
const V1_BASE64: &str = "base64.channel.k8s.io";
static KNOWN: Known =
    Known { websocket: &[V5, V4, V4_BASE64, V1, V1_BASE64, ""], spdy: &[V4, V3, V2, V1] };

/// Bytes that wait in each channel, at most.
const PIPE: usize = 32 * 1024;
/// Sizes of the terminal that wait; further ones are dropped until they are read.
const SIZES: usize = 16;

/// Answers `exec` with its options as admission left them; `attach` if it is about the process that
/// runs.
pub fn answer(
    request: &StreamRequest<'_>,
    asked: &Object,
    attach: bool,
) -> Result<ApiResponse, Status> {
    let pod = options::pod(request)?;
    let container = asked.str(&["container"]).unwrap_or_default();
    let container = options::container(&pod, container)?.to_owned();
    if !options::has_node(&pod) {
        return Err(options::no_host(&pod));
    }
    let what = if attach { "attach" } else { "exec" };
    let native = request.native_pods.of(&pod).ok_or_else(|| no_process(what))?;
    if !runs(&pod, &container) {
        let why = format!("unable to upgrade connection: container not found ({container:?})");
        return Err(Status::internal(why));
    }
    let flag = |name: &str| asked.get(&[name]).and_then(Value::as_bool).unwrap_or_default();
    let command = asked.array(&["command"]).iter().filter_map(Value::as_str);
    let command: Vec<String> = command.map(ToOwned::to_owned).collect();
    let tty = flag("tty");
    let (stdin, stdout) = (flag("stdin"), flag("stdout"));
    // A terminal has one output.
    let stderr = flag("stderr") && !tty;
    if !(stdin || stdout || stderr) {
        return Err(Status::bad_request("you must specify at least 1 of stdin, stdout, stderr"));
    }
    if !attach && command.is_empty() {
        return Err(Status::bad_request("you must specify at least one command for the container"));
    }
    let offer = EndpointForms::read(request, &KNOWN)?;
    let pipe = |wanted: bool| wanted.then(|| tokio::io::duplex(PIPE)).unzip();
    let ((input, stdin), (output, stdout)) = (pipe(stdin), pipe(stdout));
    let (errors, stderr) = pipe(stderr);
    let (sizes, receiver) = mpsc::channel(SIZES);
    let command = (!attach).then_some(command);
    let process = Process { container, command, tty, stdin, stdout, stderr, sizes: receiver };
    let job = Job { native, process, output, errors, protocol: offer.protocol };
    let client = Client { input, sizes };
    Ok(match offer.way {
        Way::WebSocket(_) => {
            offer.agree(request, move |socket| websocket::session(socket, job, client))
        }
        Way::Spdy => offer.agree(request, move |stream| spdy::session(stream, job, client)),
    })
}

fn runs(pod: &Object, container: &str) -> bool {
    options::status_of(pod, container)
        .and_then(|status| status.get("state"))
        .and_then(|state| state.get("running"))
        .is_some_and(Value::is_object)
}

/// What the client does to the process.
struct Client {
    input: Option<DuplexStream>,
    sizes: mpsc::Sender<TerminalSize>,
}

impl Client {
    /// Types something.
    async fn types(&mut self, bytes: &[u8]) {
        // A process that reads no more does not end the session: its output goes on.
        if let Some(pipe) = &mut self.input
            && pipe.write_all(bytes).await.is_err()
        {
            self.input = None;
        }
    }

    /// Changes the size of the terminal.
    fn resize(&self, size: &Size) {
        let size = TerminalSize { columns: size.columns, rows: size.rows };
        // Whoever does not look at sizes need not.
        let _ = self.sizes.try_send(size);
    }
}

/// What the client is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Channel {
    Output,
    Errors,
    /// How it ended.
    Status,
}

/// How the client is told.
trait Tell {
    /// Sends bytes; none if the client does not take them.
    async fn tell(&self, channel: Channel, bytes: Bytes) -> Option<()>;
}

/// A process that is to run, and its outputs.
struct Job {
    native: Arc<dyn NativePod>,
    process: Process,
    output: Option<DuplexStream>,
    errors: Option<DuplexStream>,
    protocol: &'static str,
}

impl Job {
    /// Whether how it ends is told by a document; older protocols tell failures only, by a text.
    fn tells_all(&self) -> bool {
        matches!(self.protocol, V5 | V4 | V4_BASE64)
    }

    /// Runs the process, sends what it writes and, behind all of it, how it ended.
    async fn run(self, client: &impl Tell) {
        let tells_all = self.tells_all();
        let Self { native, process, output, errors, .. } = self;
        let (exit, _, _) = tokio::join!(
            native.run(process),
            forward(client, Channel::Output, output),
            forward(client, Channel::Errors, errors)
        );
        let status = exit.status();
        let text = if tells_all {
            status.to_string()
        } else {
            status["message"].as_str().unwrap_or_default().to_owned()
        };
        if !text.is_empty() {
            client.tell(Channel::Status, text.into()).await;
        }
    }
}

/// Sends what comes out of a channel until it ends; none if the client does not take it.
async fn forward(client: &impl Tell, channel: Channel, pipe: Option<DuplexStream>) -> Option<()> {
    let Some(mut pipe) = pipe else { return Some(()) };
    let mut buffer = vec![0; PIPE];
    loop {
        match pipe.read(&mut buffer).await {
            Ok(0) | Err(_) => return Some(()),
            Ok(read) => {
                let bytes = Bytes::copy_from_slice(buffer.get(..read).unwrap_or_default());
                client.tell(channel, bytes).await?;
            }
        }
    }
}

/// The size of a terminal as it travels.
#[derive(Deserialize)]
struct Size {
    #[serde(rename = "Width")]
    columns: u16,
    #[serde(rename = "Height")]
    rows: u16,
}

impl Exit {
    /// What the client is told.
    fn status(&self) -> Value {
        match self {
            Self::Code(0) => json!({"metadata": {}, "status": "Success"}),
            Self::Code(code) => json!({
                "metadata": {}, "status": "Failure", "reason": "NonZeroExitCode",
                "message": format!("command terminated with non-zero exit code: exit status {code}"),
                "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]},
            }),
            Self::Failed(why) => {
                Status::internal(format!("error executing command in container: {why}")).to_value()
            }
        }
    }
}
