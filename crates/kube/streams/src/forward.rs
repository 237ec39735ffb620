//! `pods/portforward`: ports of a pod, over SPDY, SPDY through WebSocket, or channels of WebSocket.
//!
//! Over SPDY each connection is two streams that name the same `requestID`: one for its bytes, and
//! one on which the client is told what went wrong. Over channels there is one connection for each
//! port of the query: its bytes on an even channel, what went wrong on the next; the port comes
//! first on both.

use super::channels::{self, Code, Sink};
use super::spdy::{self, Headers, Input, Output, Session, Stream};
use super::tunnel::Tunnel;
use super::upgrade::{self, Connection as Changed, EndpointForms, Known, Way};
use super::{ConnectError, Connection, NativePod, options};
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
static KNOWN: Known = Known { websocket: &[TUNNEL, V4, V4_BASE64, ""], spdy: &[SPDY] };

/// How long the second stream of a pair may take.
const CREATION: Duration = Duration::from_secs(30);
/// How long connecting with a port may take.
const CONNECT: Duration = Duration::from_secs(30);
/// Bytes that are read from a port at once.
const PART: usize = 16 * 1024;
/// Messages that wait for a port that takes nothing.
const WAITING: usize = 16;
/// Ports of a query: channels have a byte, and each port takes two.
const PORTS: usize = 100;

/// The pod whose ports are asked for.
#[derive(Clone)]
struct Target {
    native: Arc<dyn NativePod>,
    name: String,
    uid: String,
    clock: Clock,
}

/// A port of a pod is not forwarded.
#[derive(Debug, thiserror::Error)]
#[error("error forwarding port {port} to pod {name}, uid {uid}: {source}")]
struct ForwardError {
    /// The port.
    port: u16,
    /// The name of the pod.
    name: String,
    /// Its UID.
    uid: String,
    /// Why not.
    source: ConnectError,
}

impl Target {
    async fn connect(&self, port: u16) -> Result<Box<dyn Connection>, ForwardError> {
        let connecting = timeout(CONNECT, self.native.connect(port)).await;
        let connected = connecting.unwrap_or_else(|_| Err(ConnectError("i/o timeout".to_owned())));
        connected.map_err(|source| {
            let (name, uid) = (self.name.clone(), self.uid.clone());
            ForwardError { port, name, uid, source }
        })
    }
}

/// Answers `portforward` with its options as admission left them.
pub fn answer(request: &StreamRequest<'_>, asked: &Object) -> Result<ApiResponse, Status> {
    let pod = options::pod(request)?;
    if !options::has_node(&pod) {
        return Err(options::no_host(&pod));
    }
    let native = request
        .native_pods
        .with_ports(&pod, request.store)
        .ok_or_else(|| super::no_ports("portforward"))?;
    let offer = EndpointForms::read(request, &KNOWN)?;
    let target = Target {
        native,
        name: pod.name().to_owned(),
        uid: pod.uid().to_owned(),
        clock: request.clock,
    };
    Ok(match (&offer.way, offer.protocol) {
        (Way::Spdy, _) => offer.agree(request, |stream| session(stream, target)),
        (_, TUNNEL) => offer.agree(request, async |stream: Changed| {
            session(Tunnel::new(upgrade::socket(stream).await), target).await;
        }),
        (_, protocol) => {
            let code = if protocol == V4_BASE64 { Code::Base64 } else { Code::Binary };
            let ports = ports(asked)?;
            offer.agree(request, move |stream| by_channels(stream, code, ports, target))
        }
    })
}

/// The ports that a query names.
fn ports(asked: &Object) -> Result<Vec<u16>, Status> {
    let named = asked.array(&["ports"]).iter().filter_map(Value::as_u64);
    let port = |number: u64| {
        let port = u16::try_from(number).ok().filter(|port| *port > 0);
        port.ok_or_else(|| Status::bad_request(format!("port \"{number}\" must be > 0")))
    };
    let ports: Vec<u16> = named.map(port).collect::<Result<_, _>>()?;
    match ports.len() {
        0 => Err(Status::bad_request("query parameter \"port\" is required")),
        1..=PORTS => Ok(ports),
        _ => Err(Status::bad_request(format!("at most {PORTS} ports are forwarded at once"))),
    }
}

/// Forwards over SPDY until the client goes.
async fn session<T>(connection: T, target: Target)
where
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin,
{
    let (session, work) = spdy::open(connection, |headers| {
        port_of(headers).is_some() && matches!(headers.get("streamtype"), "error" | "data")
    });
    tokio::select! {
        () = pairs(session, target) => {}
        () = work => {}
    }
}

/// The port that a stream is for.
fn port_of(headers: &Headers) -> Option<u16> {
    headers.get("port").parse().ok().filter(|port| *port > 0)
}

/// A pair of which one stream is there.
struct Half {
    stream: Stream,
    /// Of the clock's time.
    until: Duration,
}

/// Brings streams together, and starts a connection for each pair.
async fn pairs(mut session: Session, target: Target) {
    let mut halves: HashMap<String, Half> = HashMap::new();
    let mut running = JoinSet::new();
    loop {
        let earliest = halves.values().map(|half| half.until).min();
        let late = async {
            match earliest {
                Some(until) => sleep(until.saturating_sub(target.clock.elapsed())).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            stream = session.next() => {
                let Some(stream) = stream else { return };
                let name = request_id(&stream);
                let Some(half) = halves.remove(&name) else {
                    halves.insert(name, Half { stream, until: target.clock.elapsed() + CREATION });
                    continue;
                };
                match (is_error(&half.stream), is_error(&stream)) {
                    (true, false) => running.spawn(forward(target.clone(), stream, half.stream)),
                    (false, true) => running.spawn(forward(target.clone(), half.stream, stream)),
                    (twice, _) => {
                        let which = if twice { "error" } else { "data" };
                        let why = format!("error processing stream for request {name}: {which} stream already assigned");
                        running.spawn(async move {
                            refuse(half.stream, &why).await;
                            refuse(stream, &why).await;
                        })
                    }
                };
            }
            () = late => {
                let now = target.clock.elapsed();
                let over: Vec<String> = halves
                    .iter()
                    .filter(|(_, half)| half.until <= now)
                    .map(|(name, _)| name.clone())
                    .collect();
                for name in over {
                    if let Some(half) = halves.remove(&name) {
                        let why = format!("(request={name}) timed out waiting for streams");
                        running.spawn(async move { refuse(half.stream, &why).await });
                    }
                }
            }
            // What has ended is forgotten.
            Some(_) = running.join_next() => {}
        }
    }
}

fn is_error(stream: &Stream) -> bool {
    stream.headers.get("streamtype") == "error"
}

/// What both streams of a pair have in common. Old clients name nothing: they open the one for
/// errors first, and the other right behind it.
fn request_id(stream: &Stream) -> String {
    match stream.headers.get("requestid") {
        "" if is_error(stream) => stream.id.to_string(),
        "" => stream.id.wrapping_sub(2).to_string(),
        name => name.to_owned(),
    }
}

/// Says why a stream is not served, if it is one for that, and ends it.
async fn refuse(mut stream: Stream, why: &str) {
    if is_error(&stream) {
        stream.output.write(why.to_owned().into()).await;
        stream.output.end().await;
    } else {
        stream.output.reset().await;
    }
}

/// Serves one connection.
async fn forward(target: Target, data: Stream, error: Stream) {
    // It has been looked at when the stream was opened.
    let port = port_of(&data.headers).unwrap_or_default();
    match target.connect(port).await {
        Err(refusal) => {
            let text = refusal.to_string();
            refuse(error, &text).await;
            refuse(data, &text).await;
        }
        Ok(connection) => {
            let mut error = error.output;
            let Stream { mut input, mut output, .. } = data;
            copy(connection, &mut input, &output).await;
            output.end().await;
            error.end().await;
        }
    }
}

/// Copies both ways until the port says no more, or the client does not want the rest.
async fn copy(connection: Box<dyn Connection>, input: &mut Input, output: &Output) {
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
        while let Some(bytes) = part(&mut source).await {
            if output.write(bytes).await.is_none() {
                return;
            }
        }
    };
    tokio::select! {
        () = output.resets() => {}
        () = sending => {}
        () = receiving => {}
    }
}

/// The next bytes of a port; none at its end.
async fn part(source: &mut ReadHalf<Box<dyn Connection>>) -> Option<Bytes> {
    let mut buffer = bytes::BytesMut::with_capacity(PART);
    let read = source.read_buf(&mut buffer).await.ok()?;
    (read > 0).then(|| buffer.freeze())
}

/// Forwards over channels: a connection for each port, from the beginning.
async fn by_channels(connection: Changed, code: Code, ports: Vec<u16>, target: Target) {
    let (sink, mut source) = channels::split(upgrade::socket(connection).await, code);
    let mut inputs = Vec::new();
    let mut connections = Vec::new();
    for (channel, port) in (0_u8..).step_by(2).zip(ports) {
        let (sender, receiver) = mpsc::channel(WAITING);
        inputs.push(sender);
        connections.push(one(&sink, channel, port, receiver, &target));
    }
    let listening = async {
        while let Some((channel, bytes)) = source.next().await {
            // Even channels are for bytes; what nobody takes any more is dropped.
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
        () = sink.ask() => {}
    }
    channels::goodbye(sink, source).await;
}

/// Serves the connection of one port.
async fn one(
    sink: &Sink,
    channel: u8,
    port: u16,
    mut input: mpsc::Receiver<Bytes>,
    target: &Target,
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
        while let Some(bytes) = part(&mut source).await {
            sink.send(channel, &bytes).await?;
        }
        Some(())
    };
    tokio::select! {
        () = sending => None,
        done = receiving => done,
    }
}
