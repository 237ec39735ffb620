//! `pods/exec` and `pods/attach`: a process with its standard streams, over WebSocket or SPDY.

mod spdy;
mod websocket;

use super::options;
use super::upgrade::{ProtocolUpgrade, SupportedProtocols, Transport};
use super::{InProcessPod, Process, ProcessExit, TerminalSize, no_process};
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
static SUPPORTED: SupportedProtocols = SupportedProtocols {
    websocket: &[V5, V4, V4_BASE64, V1, V1_BASE64, ""],
    spdy: &[V4, V3, V2, V1],
};

/// The buffer of each standard stream, in bytes.
const PIPE_SIZE: usize = 32 * 1024;
/// How many terminal sizes are queued; further ones are dropped.
const SIZE_QUEUE: usize = 16;

/// Handles `exec` with its options after admission, or `attach` to the running process.
pub fn handle(
    request: &StreamRequest<'_>,
    options: &Object,
    attach: bool,
) -> Result<ApiResponse, Status> {
    let pod = options::find_pod(request)?;
    let container = options.str(&["container"]).unwrap_or_default();
    let container = options::find_container(&pod, container)?.to_owned();
    if !options::has_node(&pod) {
        return Err(options::no_host_error(&pod));
    }
    let subresource = if attach { "attach" } else { "exec" };
    let handler = request.in_process_pods.find(&pod).ok_or_else(|| no_process(subresource))?;
    if !is_running(&pod, &container) {
        let message = format!("unable to upgrade connection: container not found ({container:?})");
        return Err(Status::internal(message));
    }
    let flag = |name: &str| options.get(&[name]).and_then(Value::as_bool).unwrap_or_default();
    let command = options.array(&["command"]).iter().filter_map(Value::as_str);
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
    let upgrade = ProtocolUpgrade::read(request, &SUPPORTED)?;
    let pipe = |wanted: bool| wanted.then(|| tokio::io::duplex(PIPE_SIZE)).unzip();
    let ((input, stdin), (output, stdout)) = (pipe(stdin), pipe(stdout));
    let (errors, stderr) = pipe(stderr);
    let (sizes, receiver) = mpsc::channel(SIZE_QUEUE);
    let command = (!attach).then_some(command);
    let process = Process { container, command, tty, stdin, stdout, stderr, sizes: receiver };
    let run = ProcessRun { handler, process, output, errors, protocol: upgrade.protocol };
    let client = ClientInput { input, sizes };
    Ok(match upgrade.transport {
        Transport::WebSocket(_) => {
            upgrade.accept(request, move |socket| websocket::serve(socket, run, client))
        }
        Transport::Spdy => upgrade.accept(request, move |stream| spdy::serve(stream, run, client)),
    })
}

fn is_running(pod: &Object, container: &str) -> bool {
    options::container_status(pod, container)
        .and_then(|status| status.get("state"))
        .and_then(|state| state.get("running"))
        .is_some_and(Value::is_object)
}

/// The input of a client: standard input and terminal sizes.
struct ClientInput {
    input: Option<DuplexStream>,
    sizes: mpsc::Sender<TerminalSize>,
}

impl ClientInput {
    /// Writes to the standard input of the process.
    async fn write_stdin(&mut self, bytes: &[u8]) {
        // A process that closed its input does not end the session: its output continues.
        if let Some(pipe) = &mut self.input
            && pipe.write_all(bytes).await.is_err()
        {
            self.input = None;
        }
    }

    /// Changes the size of the terminal.
    fn resize(&self, size: &SizeMessage) {
        let size = TerminalSize { columns: size.columns, rows: size.rows };
        // A process may ignore sizes, so a full queue is no error.
        let _ = self.sizes.try_send(size);
    }
}

/// The channels to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Channel {
    Output,
    Errors,
    /// The exit status.
    Status,
}

/// The sending side of a client connection.
trait ClientOutput {
    /// Sends bytes; none if the client does not receive them.
    async fn send_to(&self, channel: Channel, bytes: Bytes) -> Option<()>;
}

/// A process that is ready to run, and its outputs.
struct ProcessRun {
    handler: Arc<dyn InProcessPod>,
    process: Process,
    output: Option<DuplexStream>,
    errors: Option<DuplexStream>,
    protocol: &'static str,
}

impl ProcessRun {
    /// Whether the protocol sends each exit status as a document; older ones send errors only, as
    /// text.
    fn has_status_document(&self) -> bool {
        matches!(self.protocol, V5 | V4 | V4_BASE64)
    }

    /// Runs the process, and sends its outputs and then its exit status.
    async fn run(self, client: &impl ClientOutput) {
        let has_status_document = self.has_status_document();
        let Self { handler, process, output, errors, .. } = self;
        let (exit, _, _) = tokio::join!(
            handler.run(process),
            send_all(client, Channel::Output, output),
            send_all(client, Channel::Errors, errors)
        );
        let status = exit.status();
        let text = if has_status_document {
            status.to_string()
        } else {
            status["message"].as_str().unwrap_or_default().to_owned()
        };
        if !text.is_empty() {
            client.send_to(Channel::Status, text.into()).await;
        }
    }
}

/// Sends the content of a pipe until it ends; none if the client does not receive it.
async fn send_all(
    client: &impl ClientOutput,
    channel: Channel,
    pipe: Option<DuplexStream>,
) -> Option<()> {
    let Some(mut pipe) = pipe else { return Some(()) };
    let mut buffer = vec![0; PIPE_SIZE];
    loop {
        match pipe.read(&mut buffer).await {
            Ok(0) | Err(_) => return Some(()),
            Ok(read) => {
                let bytes = Bytes::copy_from_slice(buffer.get(..read).unwrap_or_default());
                client.send_to(channel, bytes).await?;
            }
        }
    }
}

/// The message with the size of the terminal.
#[derive(Deserialize)]
struct SizeMessage {
    #[serde(rename = "Width")]
    columns: u16,
    #[serde(rename = "Height")]
    rows: u16,
}

impl ProcessExit {
    /// The `Status` for the client.
    fn status(&self) -> Value {
        match self {
            Self::Code(0) => json!({"metadata": {}, "status": "Success"}),
            Self::Code(code) => json!({
                "metadata": {}, "status": "Failure", "reason": "NonZeroExitCode",
                "message": format!("command terminated with non-zero exit code: exit status {code}"),
                "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]},
            }),
            Self::Failed(reason) => {
                Status::internal(format!("error executing command in container: {reason}"))
                    .to_value()
            }
        }
    }
}
