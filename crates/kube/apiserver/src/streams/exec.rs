//! `pods/exec` and `pods/attach`: a process and its channels, each message with the number of its
//! channel in front.
//!
//! | Channel | Direction | What |
//! |---|---|---|
//! | 0 | in | standard input |
//! | 1, 2 | out | standard output, standard error |
//! | 3 | out | how it ended: a `Status`, once |
//! | 4 | in | the size of the terminal, as JSON |
//! | 255 | in | the number of a channel whose input has ended (version 5 only) |

use super::options;
use super::upgrade::{Offer, Socket};
use super::{Exit, NativePod, Process, TerminalSize, no_process};
use crate::handlers::Request;
use crate::http::answer::Answer;
use bytes::{Bytes, BytesMut};
use futures::stream::{SplitSink, SplitStream};
use futures::{SinkExt as _, StreamExt as _};
use mainstay_object::{Object, Status};
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio::sync::{Mutex, mpsc};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};

const V5: &str = "v5.channel.k8s.io";
const V4: &str = "v4.channel.k8s.io";
/// Bytes that wait in each channel, at most.
const PIPE: usize = 32 * 1024;
/// Sizes of the terminal that wait; further ones are dropped until they are read.
const SIZES: usize = 16;
/// How often the client is asked whether it is still there.
const PING: Duration = Duration::from_secs(20);
/// A client that says nothing for so long is gone.
const SILENCE: Duration = Duration::from_mins(1);
/// How long a client may take to end a connection that is over.
const GOODBYE: Duration = Duration::from_secs(1);

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const STATUS: u8 = 3;
const RESIZE: u8 = 4;
const CLOSE: u8 = 255;

type Sink = Mutex<SplitSink<Socket, Message>>;

pub(super) fn answer(request: &Request<'_>, attach: bool) -> Result<Answer, Status> {
    let query = &request.query;
    let pod = options::pod(request)?;
    let container =
        options::container(&pod, query.raw("container").unwrap_or_default())?.to_owned();
    if !options::has_node(&pod) {
        return Err(options::no_host(&pod));
    }
    let what = if attach { "attach" } else { "exec" };
    let native = request.server.native_pods.of(&pod).ok_or_else(|| no_process(what))?;
    if !runs(&pod, &container) {
        let why = format!("unable to upgrade connection: container not found ({container:?})");
        return Err(Status::internal(why));
    }
    let command: Vec<String> = query.all("command").map(ToOwned::to_owned).collect();
    let tty = query.flag("tty");
    let (stdin, stdout) = (query.flag("stdin"), query.flag("stdout"));
    // A terminal has one output.
    let stderr = query.flag("stderr") && !tty;
    if !(stdin || stdout || stderr) {
        return Err(Status::bad_request("you must specify at least 1 of stdin, stdout, stderr"));
    }
    if !attach && command.is_empty() {
        return Err(Status::bad_request("you must specify at least one command for the container"));
    }
    let offer = Offer::read(request, &[V5, V4])?;
    let pipe = |wanted: bool| wanted.then(|| tokio::io::duplex(PIPE)).unzip();
    let ((input, stdin), (output, stdout)) = (pipe(stdin), pipe(stdout));
    let (errors, stderr) = pipe(stderr);
    let (sender, sizes) = mpsc::channel(SIZES);
    let command = (!attach).then_some(command);
    let process = Process { container, command, tty, stdin, stdout, stderr, sizes };
    let ends = Ends { input, output, errors, sizes: sender, closes: offer.protocol == V5 };
    Ok(offer.agree(request, move |socket| session(socket, native, process, ends)))
}

fn runs(pod: &Object, container: &str) -> bool {
    options::status_of(pod, container)
        .and_then(|status| status.get("state"))
        .and_then(|state| state.get("running"))
        .is_some_and(Value::is_object)
}

/// The server's ends of the channels.
struct Ends {
    input: Option<DuplexStream>,
    output: Option<DuplexStream>,
    errors: Option<DuplexStream>,
    sizes: mpsc::Sender<TerminalSize>,
    /// Whether the client says when its input has ended.
    closes: bool,
}

/// Runs the process until it has ended and all is said, or the client has gone.
async fn session(socket: Socket, native: Arc<dyn NativePod>, process: Process, ends: Ends) {
    let Ends { input, output, errors, sizes, closes } = ends;
    let (sink, mut source) = socket.split();
    let sink = Mutex::new(sink);
    let ended = run(&sink, &*native, process, output, errors);
    let listening = listen(&mut source, input, &sizes, closes);
    tokio::select! {
        () = ended => {}
        () = listening => {}
        () = ask(&sink) => {}
    }
    // Clients take an end without a code for a broken one. What was sent arrives only if nothing is left unread when the connection is closed; whoever
    // does not say goodbye in return is not waited for.
    let close = async {
        let normal = CloseFrame { code: CloseCode::Normal, reason: Utf8Bytes::default() };
        sink.lock().await.send(Message::Close(Some(normal))).await?;
        while source.next().await.transpose()?.is_some() {}
        Ok::<_, tokio_tungstenite::tungstenite::Error>(())
    };
    let _ = timeout(GOODBYE, close).await;
}

/// Runs the process, sends what it writes and, behind all of it, how it ended.
async fn run(
    sink: &Sink,
    native: &dyn NativePod,
    process: Process,
    output: Option<DuplexStream>,
    errors: Option<DuplexStream>,
) {
    // Clients take the first message for the sign that the streams are there.
    let first = match (&output, &errors) {
        (Some(_), _) => STDOUT,
        (None, Some(_)) => STDERR,
        (None, None) => STATUS,
    };
    if send(sink, first, &[]).await.is_none() {
        return;
    }
    let (exit, _, _) = tokio::join!(
        native.run(process),
        forward(sink, STDOUT, output),
        forward(sink, STDERR, errors)
    );
    send(sink, STATUS, exit.status().to_string().as_bytes()).await;
}

/// Sends what comes out of a channel until it ends; none if the client does not take it.
async fn forward(sink: &Sink, channel: u8, pipe: Option<DuplexStream>) -> Option<()> {
    let Some(mut pipe) = pipe else { return Some(()) };
    let mut buffer = vec![0; PIPE];
    loop {
        match pipe.read(&mut buffer).await {
            Ok(0) | Err(_) => return Some(()),
            Ok(read) => send(sink, channel, buffer.get(..read).unwrap_or_default()).await?,
        }
    }
}

async fn send(sink: &Sink, channel: u8, bytes: &[u8]) -> Option<()> {
    let mut message = BytesMut::with_capacity(bytes.len() + 1);
    message.extend_from_slice(&[channel]);
    message.extend_from_slice(bytes);
    sink.lock().await.send(Message::Binary(message.freeze())).await.ok()
}

/// Asks the client for a sign of life from time to time, until asking fails.
async fn ask(sink: &Sink) {
    loop {
        tokio::time::sleep(PING).await;
        if sink.lock().await.send(Message::Ping(Bytes::new())).await.is_err() {
            return;
        }
    }
}

/// Takes what the client sends until it has gone or breaks the protocol.
async fn listen(
    source: &mut SplitStream<Socket>,
    mut input: Option<DuplexStream>,
    sizes: &mpsc::Sender<TerminalSize>,
    closes: bool,
) {
    while let Ok(Some(Ok(message))) = timeout(SILENCE, source.next()).await {
        let bytes = match message {
            Message::Binary(bytes) => bytes,
            Message::Ping(_) | Message::Pong(_) => continue,
            _ => return,
        };
        let Some((channel, rest)) = bytes.split_first() else { continue };
        match *channel {
            STDIN => {
                // A process that reads no more does not end the session: its output goes on.
                if let Some(pipe) = &mut input
                    && pipe.write_all(rest).await.is_err()
                {
                    input = None;
                }
            }
            RESIZE => {
                if let Ok(size) = serde_json::from_slice::<Size>(rest) {
                    let size = TerminalSize { columns: size.columns, rows: size.rows };
                    // Whoever does not look at sizes need not.
                    let _ = sizes.try_send(size);
                }
            }
            CLOSE if closes && rest == [STDIN] => input = None,
            _ => {}
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
