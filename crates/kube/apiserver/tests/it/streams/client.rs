//! A streaming client over an in-memory connection, and a pod that it connects to.

use crate::harness::Api;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use mainstay_auth::Identity;
use mainstay_streams::{ContainerLog, InProcessPod, Process, ProcessExit};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::Role;

/// An in-process pod with a few commands.
pub(super) struct Shell;

impl InProcessPod for Shell {
    fn log(&self, _: &str, _: bool) -> Option<ContainerLog> {
        None
    }

    fn run(&self, process: Process) -> BoxFuture<'_, ProcessExit> {
        Box::pin(shell(process))
    }
}

async fn shell(process: Process) -> ProcessExit {
    let Process { command, stdin, stdout, stderr, mut sizes, .. } = process;
    let mut output = stdout.unwrap();
    let Some(command) = command else {
        let size = sizes.recv().await.unwrap();
        let text = format!("attached {}x{}", size.columns, size.rows);
        output.write_all(text.as_bytes()).await.unwrap();
        return ProcessExit::Code(0);
    };
    let words: Vec<&str> = command.iter().map(String::as_str).collect();
    match words[..] {
        ["say", text] => {
            output.write_all(text.as_bytes()).await.unwrap();
            if let Some(mut errors) = stderr {
                errors.write_all(b"done").await.unwrap();
            }
            ProcessExit::Code(0)
        }
        ["exit", code] => ProcessExit::Code(code.parse().unwrap()),
        ["cat"] => {
            let mut input = stdin.unwrap();
            let mut buffer = [0; 1000];
            loop {
                match input.read(&mut buffer).await {
                    Ok(0) | Err(_) => return ProcessExit::Code(0),
                    Ok(read) => output.write_all(&buffer[..read]).await.unwrap(),
                }
            }
        }
        _ => ProcessExit::Failed("no such command".to_owned()),
    }
}

/// An open stream.
pub(super) type Client = WebSocketStream<Wire>;

/// An upgraded connection.
pub(super) type Wire = TokioIo<Upgraded>;

/// Upgrades a connection; the error is code and message of the refusal.
pub(super) async fn connect(
    api: &Api,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
) -> Result<(Wire, HeaderMap), String> {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let service = TowerToHyperService::new(api.server.service(Identity::admin()));
    tokio::spawn(async move {
        let connection = hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(theirs), service);
        // It ends when its client disconnects.
        let _ = connection.with_upgrades().await;
    });
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(ours)).await.unwrap();
    tokio::spawn(async move {
        let _ = connection.with_upgrades().await;
    });
    let mut request = Request::builder().method(method).uri(path).header("host", "localhost");
    if !headers.is_empty() {
        request = request.header("connection", "keep-alive, Upgrade");
    }
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request.body(Full::new(Bytes::new())).unwrap();
    let response = sender.send_request(request).await.unwrap();
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        let code = response.status().as_u16();
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        let status: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
        return Err(format!("{code} {}", status["message"].as_str().unwrap()));
    }
    let answered = response.headers().clone();
    Ok((TokioIo::new(hyper::upgrade::on(response).await.unwrap()), answered))
}

/// Opens a WebSocket stream; an empty protocol means none.
pub(super) async fn open(api: &Api, path: &str, protocol: &str) -> Result<Client, String> {
    let mut headers = vec![
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    if !protocol.is_empty() {
        headers.push(("sec-websocket-protocol", protocol));
    }
    let (wire, answered) = connect(api, "GET", path, &headers).await?;
    let chosen =
        answered.get("sec-websocket-protocol").map_or("", |protocol| protocol.to_str().unwrap());
    assert_eq!(chosen, protocol);
    assert_eq!(answered["sec-websocket-accept"], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    Ok(WebSocketStream::from_raw_socket(wire, Role::Client, None).await)
}
