//! `pods/portforward`: ports of a pod, over SPDY, SPDY through WebSocket, or WebSocket channels.
//!
//! Over SPDY, each connection is two streams with the same `requestID`: one for data, one for
//! errors. Over channels, there is one connection for each port of the query: data on an even
//! channel, errors on the next. The first message of both is the port.

use super::channels::{self, ChannelEncoding, ChannelSink};
use super::spdy::{self, Headers, Session, Stream, StreamInput, StreamOutput};
use super::tunnel::Tunnel;
use super::upgrade::{self, ProtocolUpgrade, SupportedProtocols, Transport, UpgradedConnection};
use super::{ConnectError, InProcessPod, PodConnection, options};
use crate::StreamRequest;
use bytes::Bytes;
use mainstay_clock::Clock;
use mainstay_http::response::ApiResponse;
use mainstay_object::{Object, Status};
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, ReadHalf, WriteHalf};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

const SPDY: &str = "portforward.k8s.io";
const TUNNEL: &str = "SPDY/3.1+portforward.k8s.io";
const V4: &str = "v4.channel.k8s.io";
const V4_BASE64: &str = "v4.base64.channel.k8s.io";
static SUPPORTED: SupportedProtocols =
    SupportedProtocols { websocket: &[TUNNEL, V4, V4_BASE64, ""], spdy: &[SPDY] };

/// How long the client may take to open the second stream of a pair.
const STREAM_TIMEOUT: Duration = Duration::from_secs(30);
/// How long connecting to a port may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// The most bytes of one read from a port.
const READ_SIZE: usize = 16 * 1024;
/// How many messages are queued for a port that does not read.
const PORT_QUEUE: usize = 16;
/// The most ports of a query: a channel number has a byte, and each port takes two channels.
const MAX_PORTS: usize = 100;

/// The pod whose ports are forwarded.
#[derive(Clone)]
struct ForwardTarget {
    handler: Arc<dyn InProcessPod>,
    name: String,
    uid: String,
    clock: Clock,
}

/// A port of a pod cannot be forwarded.
#[derive(Debug, thiserror::Error)]
#[error("error forwarding port {port} to pod {name}, uid {uid}: {source}")]
struct ForwardError {
    /// The port.
    port: u16,
    /// The name of the pod.
    name: String,
    /// Its UID.
    uid: String,
    /// The error.
    source: ConnectError,
}

impl ForwardTarget {
    async fn connect(&self, port: u16) -> Result<Box<dyn PodConnection>, ForwardError> {
        let connecting = timeout(CONNECT_TIMEOUT, self.handler.connect(port)).await;
        let connected = connecting.unwrap_or_else(|_| Err(ConnectError("i/o timeout".to_owned())));
        connected.map_err(|source| {
            let (name, uid) = (self.name.clone(), self.uid.clone());
            ForwardError { port, name, uid, source }
        })
    }
}

/// Handles `portforward` with its options after admission.
pub fn handle(request: &StreamRequest<'_>, options: &Object) -> Result<ApiResponse, Status> {
    let pod = options::find_pod(request)?;
    if !options::has_node(&pod) {
        return Err(options::no_host_error(&pod));
    }
    let handler = request
        .in_process_pods
        .with_ports(&pod, request.store)
        .ok_or_else(|| super::no_ports("portforward"))?;
    let upgrade = ProtocolUpgrade::read(request, &SUPPORTED)?;
    let target = ForwardTarget {
        handler,
        name: pod.name().to_owned(),
        uid: pod.uid().to_owned(),
        clock: request.clock,
    };
    Ok(match (&upgrade.transport, upgrade.protocol) {
        (Transport::Spdy, _) => upgrade.accept(request, |stream| forward_spdy(stream, target)),
        (_, TUNNEL) => upgrade.accept(request, async |stream: UpgradedConnection| {
            forward_spdy(Tunnel::new(upgrade::websocket_connection(stream).await), target).await;
        }),
        (_, protocol) => {
            let encoding = if protocol == V4_BASE64 {
                ChannelEncoding::Base64
            } else {
                ChannelEncoding::Binary
            };
            let ports = read_ports(options)?;
            upgrade.accept(request, move |stream| forward_channels(stream, encoding, ports, target))
        }
    })
}

/// The ports in the query.
fn read_ports(options: &Object) -> Result<Vec<u16>, Status> {
    let numbers = options.array(&["ports"]).iter().filter_map(Value::as_u64);
    let port = |number: u64| {
        let port = u16::try_from(number).ok().filter(|port| *port > 0);
        port.ok_or_else(|| Status::bad_request(format!("port \"{number}\" must be > 0")))
    };
    let ports: Vec<u16> = numbers.map(port).collect::<Result<_, _>>()?;
    match ports.len() {
        0 => Err(Status::bad_request("query parameter \"port\" is required")),
        1..=MAX_PORTS => Ok(ports),
        _ => Err(Status::bad_request(format!("at most {MAX_PORTS} ports are forwarded at once"))),
    }
}

/// Forwards over SPDY until the client closes the connection.
async fn forward_spdy<T>(connection: T, target: ForwardTarget)
where
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin,
{
    let (session, io) = spdy::open(connection, |headers| {
        port_of(headers).is_some() && matches!(headers.get("streamtype"), "error" | "data")
    });
    tokio::select! {
        () = pair_streams(session, target) => {}
        () = io => {}
    }
}

/// The port in the headers of a stream.
fn port_of(headers: &Headers) -> Option<u16> {
    headers.get("port").parse().ok().filter(|port| *port > 0)
}

/// The first stream of a pair.
struct UnpairedStream {
    stream: Stream,
    /// When the second stream is late, in time of the clock.
    deadline: Duration,
}

/// Pairs streams, and forwards a connection for each pair.
async fn pair_streams(mut session: Session, target: ForwardTarget) {
    let mut unpaired: HashMap<String, UnpairedStream> = HashMap::new();
    let mut running = JoinSet::new();
    loop {
        let earliest = unpaired.values().map(|first| first.deadline).min();
        let late = async {
            match earliest {
                Some(deadline) => sleep(deadline.saturating_sub(target.clock.elapsed())).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            stream = session.next() => {
                let Some(stream) = stream else { return };
                let id = request_id(&stream);
                let Some(first) = unpaired.remove(&id) else {
                    let deadline = target.clock.elapsed() + STREAM_TIMEOUT;
                    unpaired.insert(id, UnpairedStream { stream, deadline });
                    continue;
                };
                match (is_error(&first.stream), is_error(&stream)) {
                    (true, false) => {
                        running.spawn(forward_connection(target.clone(), stream, first.stream))
                    }
                    (false, true) => {
                        running.spawn(forward_connection(target.clone(), first.stream, stream))
                    }
                    (is_error, _) => {
                        let stream_type = if is_error { "error" } else { "data" };
                        let message = format!("error processing stream for request {id}: {stream_type} stream already assigned");
                        running.spawn(async move {
                            reject_stream(first.stream, &message).await;
                            reject_stream(stream, &message).await;
                        })
                    }
                };
            }
            () = late => {
                let now = target.clock.elapsed();
                let late: Vec<String> = unpaired
                    .iter()
                    .filter(|(_, first)| first.deadline <= now)
                    .map(|(id, _)| id.clone())
                    .collect();
                for id in late {
                    if let Some(first) = unpaired.remove(&id) {
                        let message = format!("(request={id}) timed out waiting for streams");
                        running.spawn(async move { reject_stream(first.stream, &message).await });
                    }
                }
            }
            // Finished tasks are removed.
            Some(_) = running.join_next() => {}
        }
    }
}

fn is_error(stream: &Stream) -> bool {
    stream.headers.get("streamtype") == "error"
}

/// The common id of both streams of a pair. Old clients send none: they open the error stream
/// first, and the data stream after it.
fn request_id(stream: &Stream) -> String {
    match stream.headers.get("requestid") {
        "" if is_error(stream) => stream.id.to_string(),
        "" => stream.id.wrapping_sub(2).to_string(),
        name => name.to_owned(),
    }
}

/// Sends the reason on an error stream and ends it; resets a data stream.
async fn reject_stream(mut stream: Stream, reason: &str) {
    if is_error(&stream) {
        stream.output.write(reason.to_owned().into()).await;
        stream.output.end().await;
    } else {
        stream.output.reset().await;
    }
}

/// Forwards one connection.
async fn forward_connection(target: ForwardTarget, data: Stream, error: Stream) {
    // Only streams with a valid port are accepted.
    let port = port_of(&data.headers).unwrap_or_default();
    match target.connect(port).await {
        Err(connect_error) => {
            let text = connect_error.to_string();
            reject_stream(error, &text).await;
            reject_stream(data, &text).await;
        }
        Ok(connection) => {
            let mut error = error.output;
            let Stream { mut input, mut output, .. } = data;
            copy_both_ways(connection, &mut input, &output).await;
            output.end().await;
            error.end().await;
        }
    }
}

/// Copies in both directions until the port closes the connection, or the client resets the stream.
async fn copy_both_ways(
    connection: Box<dyn PodConnection>,
    input: &mut StreamInput,
    output: &StreamOutput,
) {
    let (mut source, mut sink) = tokio::io::split(connection);
    let sending = async {
        while let Some(bytes) = input.read().await {
            if sink.write_all(&bytes).await.is_err() {
                break;
            }
        }
        let _ = sink.shutdown().await;
        std::future::pending::<()>().await;
    };
    let receiving = async {
        while let Some(bytes) = read_part(&mut source).await {
            if output.write(bytes).await.is_none() {
                return;
            }
        }
    };
    tokio::select! {
        () = output.wait_for_reset() => {}
        () = sending => {}
        () = receiving => {}
    }
}

/// The next bytes from a port; none at the end.
async fn read_part(source: &mut ReadHalf<Box<dyn PodConnection>>) -> Option<Bytes> {
    let mut buffer = bytes::BytesMut::with_capacity(READ_SIZE);
    let read = source.read_buf(&mut buffer).await.ok()?;
    (read > 0).then(|| buffer.freeze())
}

/// Forwards over channels: one connection for each port, from the beginning.
async fn forward_channels(
    connection: UpgradedConnection,
    encoding: ChannelEncoding,
    ports: Vec<u16>,
    target: ForwardTarget,
) {
    let (sink, mut source) =
        channels::split(upgrade::websocket_connection(connection).await, encoding);
    let mut inputs = Vec::new();
    let mut connections = Vec::new();
    for (channel, port) in (0_u8..).step_by(2).zip(ports) {
        let (sender, receiver) = mpsc::channel(PORT_QUEUE);
        inputs.push(sender);
        connections.push(forward_port(&sink, channel, port, receiver, &target));
    }
    let listening = async {
        while let Some((channel, bytes)) = source.next().await {
            // Even channels carry data; data for a closed port is dropped.
            if channel % 2 == 0
                && let Some(input) = inputs.get(usize::from(channel / 2))
            {
                let _ = input.send(bytes).await;
            }
        }
    };
    tokio::select! {
        _ = futures::future::join_all(connections) => {}
        () = listening => {}
        () = sink.send_pings() => {}
    }
    channels::close(sink, source).await;
}

/// Forwards the connection of one port.
async fn forward_port(
    sink: &ChannelSink,
    channel: u8,
    port: u16,
    mut input: mpsc::Receiver<Bytes>,
    target: &ForwardTarget,
) -> Option<()> {
    sink.send(channel, &port.to_le_bytes()).await?;
    sink.send(channel + 1, &port.to_le_bytes()).await?;
    let connection = match target.connect(port).await {
        Ok(connection) => connection,
        Err(error) => return sink.send(channel + 1, error.to_string().as_bytes()).await,
    };
    let (mut source, mut to): (_, WriteHalf<_>) = tokio::io::split(connection);
    let sending = async {
        while let Some(bytes) = input.recv().await {
            if to.write_all(&bytes).await.is_err() {
                break;
            }
        }
        std::future::pending::<()>().await;
    };
    let receiving = async {
        while let Some(bytes) = read_part(&mut source).await {
            sink.send(channel, &bytes).await?;
        }
        Some(())
    };
    tokio::select! {
        () = sending => None,
        done = receiving => done,
    }
}
