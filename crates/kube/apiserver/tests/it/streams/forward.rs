//! `pods/portforward` over all its protocols.

use super::client::{connect, open};
use super::spdy::{Frame, Spdy, control, encode_numbers};
use super::{PODS, pod, running, set_container_status};
use crate::harness::Api;
use futures::future::BoxFuture;
use futures::{SinkExt as _, StreamExt as _};
use mainstay_streams::{ConnectError, ContainerLog, InProcessPod, PodConnection};
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio_tungstenite::tungstenite::Message;

/// An in-process pod with a few ports.
pub(super) struct Ports;

impl InProcessPod for Ports {
    fn log(&self, _: &str, _: bool) -> Option<ContainerLog> {
        None
    }

    fn connect(&self, port: u16) -> BoxFuture<'_, Result<Box<dyn PodConnection>, ConnectError>> {
        let (ours, theirs) = tokio::io::duplex(1000);
        match port {
            // Echoes its input.
            7 => drop(tokio::spawn(async move {
                let (mut source, mut sink) = tokio::io::split(theirs);
                let _ = tokio::io::copy(&mut source, &mut sink).await;
                let _ = sink.shutdown().await;
            })),
            // Sends one message and closes.
            13 => drop(tokio::spawn(async move {
                let mut theirs = theirs;
                theirs.write_all(b"noon").await.unwrap();
            })),
            // Neither reads nor writes.
            9 => drop(tokio::spawn(async move {
                let _theirs = theirs;
                std::future::pending::<()>().await;
            })),
            // A minimal HTTP server.
            80 => drop(tokio::spawn(super::proxy::respond(theirs))),
            _ => return Box::pin(async move { Err(ConnectError(format!("nobody is at {port}"))) }),
        }
        Box::pin(async { Ok(Box::new(ours) as Box<dyn PodConnection>) })
    }
}

pub(super) async fn api() -> Api {
    let api = Api::new().await;
    pod(&api, "p", &["c"], true).await;
    set_container_status(&api, "p", running()).await;
    api.server.add_in_process_pod("default", "p", Arc::new(Ports));
    api
}

/// A client over SPDY, or SPDY through WebSocket.
async fn client(api: &Api, tunnel: bool) -> Spdy {
    let path = format!("{PODS}/p/portforward");
    if !tunnel {
        let headers =
            [("upgrade", "SPDY/3.1"), ("x-stream-protocol-version", "portforward.k8s.io")];
        return Spdy::new(connect(api, "POST", &path, &headers).await.unwrap().0);
    }
    let socket = open(api, &path, "SPDY/3.1+portforward.k8s.io").await.unwrap();
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    tokio::spawn(async move {
        let (mut sink, mut source) = socket.split();
        let (mut from, mut to): (_, tokio::io::WriteHalf<DuplexStream>) = tokio::io::split(theirs);
        let down = async {
            while let Some(Ok(message)) = source.next().await {
                if let Message::Binary(bytes) = message {
                    to.write_all(&bytes).await.unwrap();
                }
            }
            let _ = to.shutdown().await;
        };
        let up = async {
            // Messages end at any byte.
            let mut buffer = [0; 7];
            while let Ok(read @ 1..) = from.read(&mut buffer).await {
                let message = Message::Binary(buffer[..read].to_vec().into());
                if sink.send(message).await.is_err() {
                    break;
                }
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = down => {}
            () = up => {}
        }
    });
    Spdy::new(ours)
}

/// Opens a pair of streams: errors and data.
async fn pair(client: &mut Spdy, port: &str, request: &str) -> (u32, u32) {
    let all = |kind| [("streamtype", kind), ("port", port), ("requestid", request)];
    let error = client.open(&all("error")).await;
    let data = client.open(&all("data")).await;
    // Kubernetes clients send nothing on the error stream.
    client.data(error, b"", true).await;
    (error, data)
}

#[tokio::test]
async fn a_forwarded_connection_is_a_pair_of_streams() {
    let api = api().await;
    for tunnel in [false, true] {
        let mut client = client(&api, tunnel).await;
        let (error, data) = pair(&mut client, "7", "0").await;
        let (other_error, other) = pair(&mut client, "13", "1").await;
        let long = "echo".repeat(25_000);
        // The echo flows back while data is sent.
        for part in long.as_bytes().chunks(500) {
            client.data(data, part, false).await;
        }
        client.data(data, b"", true).await;
        let texts = client.until(vec![error, data, other_error, other]).await;
        assert_eq!(texts[&data].len(), long.len());
        assert_eq!(texts[&data], long);
        assert_eq!((texts[&error].as_str(), texts[&other_error].as_str()), ("", ""));
        assert_eq!(texts[&other], "noon");
        // The connection stays open.
        let (error, data) = pair(&mut client, "13", "0").await;
        assert_eq!(client.until(vec![error, data]).await[&data], "noon");
    }
}

#[tokio::test]
async fn port_forward_failures_are_reported_on_the_error_stream() {
    let api = api().await;
    for tunnel in [false, true] {
        let mut client = client(&api, tunnel).await;
        let (error, data) = pair(&mut client, "1234", "0").await;
        let texts = client.until(vec![error, data]).await;
        let uid = api.get(&format!("{PODS}/p")).await.ok()["metadata"]["uid"].clone();
        let uid = uid.as_str().unwrap();
        let why = format!("error forwarding port 1234 to pod p, uid {uid}: nobody is at 1234");
        assert_eq!(texts[&error], why);
        // Two streams for the same request.
        let all = [("streamtype", "error"), ("port", "7"), ("requestid", "5")];
        let (one, other) = (client.open(&all).await, client.open(&all).await);
        let texts = client.until(vec![one, other]).await;
        let why = "error processing stream for request 5: error stream already assigned";
        assert_eq!(texts[&one], why);
    }
}

#[tokio::test]
async fn port_forward_works_without_request_ids() {
    let api = api().await;
    let mut client = client(&api, false).await;
    let error = client.open(&[("streamtype", "error"), ("port", "13")]).await;
    let data = client.open(&[("streamtype", "data"), ("port", "13")]).await;
    assert_eq!(client.until(vec![error, data]).await[&data], "noon");
}

#[tokio::test]
async fn streams_without_a_port_or_a_kind_are_reset() {
    let api = api().await;
    let mut client = client(&api, false).await;
    for headers in [
        &[("streamtype", "data")][..],
        &[("streamtype", "data"), ("port", "0")],
        &[("streamtype", "data"), ("port", "65536")],
        &[("streamtype", "data"), ("port", "http")],
        &[("streamtype", "stdin"), ("port", "80")],
        &[("port", "80")],
    ] {
        let stream = client.open(headers).await;
        assert_eq!(client.frame().await, Some(Frame::Reset(stream, 5)), "{headers:?}");
    }
}

#[tokio::test]
async fn the_number_of_forwarded_streams_is_limited() {
    let api = api().await;
    let mut client = client(&api, false).await;
    let mut refused = 0;
    for request in 0..2000 {
        let request = request.to_string();
        let all = [("streamtype", "data"), ("port", "7"), ("requestid", request.as_str())];
        let stream = client.open(&all).await;
        match client.frame().await {
            Some(Frame::Reply(id)) => assert_eq!(id, stream),
            Some(Frame::Reset(id, 3)) if id == stream => refused += 1,
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(refused, 2000 - 256);
}

#[tokio::test(start_paused = true)]
async fn an_unread_forwarded_stream_delays_the_others_only_until_its_timeout() {
    let api = api().await;
    let mut client = client(&api, false).await;
    let (_, stuck) = pair(&mut client, "9", "0").await;
    let (error, data) = pair(&mut client, "13", "1").await;
    assert_eq!(client.until(vec![error, data]).await[&data], "noon");
    // Far more than the buffers of the stream and its port.
    let (mut reset, large) = (false, vec![0; 400_000]);
    client.data(stuck, &large, false).await;
    client.write(&control(6, 0, &encode_numbers(&[1]))).await;
    loop {
        match client.frame().await.unwrap() {
            Frame::Reset(stream, 7) => {
                assert_eq!(stream, stuck);
                reset = true;
            }
            Frame::Ping(1) => break,
            _ => {}
        }
    }
    assert!(reset);
}

#[tokio::test(start_paused = true)]
async fn an_incomplete_pair_of_streams_times_out() {
    let api = api().await;
    let mut client = client(&api, false).await;
    let all = [("streamtype", "error"), ("port", "7"), ("requestid", "8")];
    let error = client.open(&all).await;
    let texts = client.until(vec![error]).await;
    assert_eq!(texts[&error], "(request=8) timed out waiting for streams");
}

#[tokio::test]
async fn a_client_that_resets_a_stream_ends_its_connection() {
    let api = api().await;
    let mut client = client(&api, false).await;
    let (error, data) = pair(&mut client, "9", "0").await;
    client.data(data, b"x", false).await;
    client.write(&control(3, 0, &encode_numbers(&[data, 5]))).await;
    // The error stream ends without an error.
    assert_eq!(client.until(vec![error]).await[&error], "");
}

#[tokio::test]
async fn websocket_channels_have_a_connection_for_each_port_of_the_query() {
    let api = api().await;
    let path = format!("{PODS}/p/portforward?ports=7&ports=1234");
    let mut client = open(&api, &path, "v4.channel.k8s.io").await.unwrap();
    client.send(Message::Binary(b"\0hello".to_vec().into())).await.unwrap();
    client.send(Message::Binary(b"\x02nobody".to_vec().into())).await.unwrap();
    let mut all = vec![Vec::new(); 4];
    while all[0].len() < 7 || all[3].len() < 10 {
        if let Message::Binary(bytes) = client.next().await.unwrap().unwrap() {
            all[usize::from(bytes[0])].extend_from_slice(&bytes[1..]);
        }
    }
    assert_eq!(all[0], b"\x07\0hello");
    assert_eq!(all[1], b"\x07\0");
    assert_eq!(all[2], 1234_u16.to_le_bytes());
    let why = String::from_utf8(all[3][2..].to_vec()).unwrap();
    assert!(why.starts_with("error forwarding port 1234 to pod p"), "{why}");
    for (query, expected) in [
        ("", "400 query parameter \"port\" is required"),
        ("?ports=0", "400 port \"0\" must be > 0"),
        (
            "?ports=70000",
            "400 cannot convert to []int32: strconv.ParseUint: parsing \"70000\": value out of range",
        ),
    ] {
        let path = format!("{PODS}/p/portforward{query}");
        let refused = open(&api, &path, "v4.channel.k8s.io").await.err().unwrap();
        assert_eq!(refused, expected);
    }
}

#[tokio::test]
async fn host_ports_of_simulated_pods_are_forwarded_to_this_machine() {
    let api = Api::new().await;
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            stream.write_all(b"from the host").await.unwrap();
        }
    });
    pod(&api, "p", &["c"], true).await;
    set_container_status(&api, "p", running()).await;
    let path = format!("{PODS}/p/portforward");
    let tunnel = "SPDY/3.1+portforward.k8s.io";
    let refused = open(&api, &path, tunnel).await.err().unwrap();
    assert_eq!(
        refused,
        "405 portforward is not supported: the nodes of this cluster are simulated and run no processes; the annotation mainstay.dev/host-ports of a pod maps its ports to ports of this machine"
    );
    let ports = format!("80:{port}");
    let annotation =
        serde_json::json!({"metadata": {"annotations": {"mainstay.dev/host-ports": ports}}});
    api.patch(&format!("{PODS}/p"), "merge", &annotation).await.ok();
    let mut client = client(&api, true).await;
    let (error, data) = pair(&mut client, "80", "0").await;
    assert_eq!(client.until(vec![error, data]).await[&data], "from the host");
    let (error, data) = pair(&mut client, "81", "1").await;
    let texts = client.until(vec![error, data]).await;
    let why = "port 81 is not mapped: add it to the pod's annotation mainstay.dev/host-ports";
    assert!(texts[&error].ends_with(why), "{texts:?}");
}
