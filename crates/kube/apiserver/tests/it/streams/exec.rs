//! `pods/exec` and `pods/attach` over WebSocket.

use super::client::{Client, Shell, open};
use super::{PODS, pod, running, set_container_status};
use crate::harness::Api;
use futures::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio_tungstenite::tungstenite::Message;

const V5: &str = "v5.channel.k8s.io";

/// An API with a pod that has a shell.
async fn api() -> Api {
    let api = Api::new().await;
    pod(&api, "p", &["c"], true).await;
    set_container_status(&api, "p", running()).await;
    api.server.add_in_process_pod("default", "p", Arc::new(Shell));
    api
}

fn message(channel: u8, text: &str) -> Message {
    Message::Binary([&[channel], text.as_bytes()].concat().into())
}

/// Reads the data of channels 1 and 2, and the final status.
async fn rest(client: &mut Client) -> (String, String, Value) {
    let (mut output, mut errors, mut status) = (String::new(), String::new(), Value::Null);
    while let Some(Ok(message)) = client.next().await {
        let Message::Binary(bytes) = message else { continue };
        let text = std::str::from_utf8(&bytes[1..]).unwrap();
        match bytes[0] {
            1 => output.push_str(text),
            2 => errors.push_str(text),
            3 if text.is_empty() => {}
            3 => status = serde_json::from_str(text).unwrap(),
            other => panic!("channel {other}"),
        }
    }
    (output, errors, status)
}

#[tokio::test]
async fn exec_returns_output_and_exit_code() {
    let api = api().await;
    for protocol in [V5, "v4.channel.k8s.io"] {
        let path = format!("{PODS}/p/exec?command=say&command=a%20b&stdout=1&stderr=1");
        let mut client = open(&api, &path, protocol).await.unwrap();
        let success = json!({"metadata": {}, "status": "Success"});
        assert_eq!(rest(&mut client).await, ("a b".to_owned(), "done".to_owned(), success));
        let path = format!("{PODS}/p/exec?command=exit&command=3&stdout=1");
        let (_, _, status) = rest(&mut open(&api, &path, protocol).await.unwrap()).await;
        assert_eq!(status["reason"], "NonZeroExitCode");
        assert_eq!(status["details"]["causes"], json!([{"reason": "ExitCode", "message": "3"}]));
        let path = format!("{PODS}/p/exec?command=none&stdout=1");
        let (_, _, status) = rest(&mut open(&api, &path, protocol).await.unwrap()).await;
        let why = "Internal error occurred: error executing command in container: no such command";
        assert_eq!((&status["message"], &status["code"]), (&json!(why), &json!(500)));
    }
}

#[tokio::test]
async fn older_protocols_report_failures_as_text_and_may_use_base64() {
    let api = api().await;
    for (protocol, encoded, all) in [
        ("v4.base64.channel.k8s.io", true, true),
        ("base64.channel.k8s.io", true, false),
        ("channel.k8s.io", false, false),
        ("", false, false),
    ] {
        let path = format!("{PODS}/p/exec?command=cat&stdin=1&stdout=1");
        let mut client = open(&api, &path, protocol).await.unwrap();
        let typed = if encoded { Message::text("0YSBi") } else { message(0, "a b") };
        client.send(typed).await.unwrap();
        let mut texts = Vec::new();
        while texts.len() < 2 {
            match client.next().await.unwrap().unwrap() {
                Message::Text(text) if encoded => texts.push(text.to_string()),
                Message::Binary(bytes) if !encoded => {
                    texts.push(format!("{}{}", bytes[0], str::from_utf8(&bytes[1..]).unwrap()));
                }
                _ => {}
            }
        }
        let expected = if encoded { ["1", "1YSBi"] } else { ["1", "1a b"] };
        assert_eq!(texts, expected, "{protocol}");
        let path = format!("{PODS}/p/exec?command=exit&command=3&stdout=1");
        let mut client = open(&api, &path, protocol).await.unwrap();
        let mut last = String::new();
        while let Some(Ok(message)) = client.next().await {
            match message {
                Message::Text(text) => last = text.to_string(),
                Message::Binary(bytes) => last = String::from_utf8(bytes.to_vec()).unwrap(),
                _ => {}
            }
        }
        let expected = match (encoded, all) {
            (true, true) => "3eyJkZXRhaWxzIjp7",
            (true, false) => "3Y29tbWFuZCB0ZXJtaW5hdGVk",
            (false, _) => "\u{3}command terminated with non-zero exit code: exit status 3",
        };
        assert!(last.starts_with(expected), "{protocol}: {last:?}");
    }
}

#[tokio::test]
async fn input_is_sent_until_the_client_closes_it() {
    let api = api().await;
    let path = format!("{PODS}/p/exec?command=cat&stdin=1&stdout=1");
    let client = open(&api, &path, V5).await.unwrap();
    let large = "x".repeat(300_000);
    // More data than the channels buffer: it flows only if it is read meanwhile.
    let (mut sink, source) = client.split();
    let sending = async {
        sink.send(message(0, "one ")).await.unwrap();
        sink.send(message(0, &large)).await.unwrap();
        sink.send(message(255, "\0")).await.unwrap();
    };
    let reading = async {
        let texts = source.filter_map(async |message| match message.unwrap() {
            Message::Binary(bytes) if bytes[0] == 1 => {
                Some(String::from_utf8(bytes[1..].to_vec()).unwrap())
            }
            _ => None,
        });
        texts.collect::<String>().await
    };
    let ((), output) = tokio::join!(sending, reading);
    assert_eq!(output.len(), 4 + large.len());
    assert!(output.starts_with("one xxx"));
}

#[tokio::test]
async fn attach_has_a_terminal_with_a_size() {
    let api = api().await;
    let path = format!("{PODS}/p/attach?stdin=1&stdout=1&stderr=1&tty=1");
    let mut client = open(&api, &path, V5).await.unwrap();
    client.send(message(4, "not a size")).await.unwrap();
    client.send(message(4, r#"{"Width":80,"Height":25}"#)).await.unwrap();
    client.send(message(9, "an unknown channel")).await.unwrap();
    let (output, errors, _) = rest(&mut client).await;
    assert_eq!((output.as_str(), errors.as_str()), ("attached 80x25", ""));
}

#[tokio::test]
async fn an_invalid_exec_is_refused_before_a_process_starts() {
    let api = api().await;
    pod(&api, "lone", &["c"], false).await;
    pod(&api, "sim", &["c"], true).await;
    pod(&api, "new", &["c"], true).await;
    api.server.add_in_process_pod("default", "new", Arc::new(Shell));
    for (path, protocol, expected) in [
        ("none/exec?command=x&stdout=1", V5, "404 pods \"none\" not found"),
        ("p/exec?command=x&stdout=1&container=y", V5, "400 container y is not valid for pod p"),
        ("lone/exec?command=x&stdout=1", V5, "400 pod lone does not have a host assigned"),
        (
            "sim/exec?command=x&stdout=1",
            V5,
            "405 exec is not supported: the nodes of this cluster are simulated and run no processes",
        ),
        (
            "sim/attach?stdout=1",
            V5,
            "405 attach is not supported: the nodes of this cluster are simulated and run no processes",
        ),
        (
            "new/exec?command=x&stdout=1",
            V5,
            "500 Internal error occurred: unable to upgrade connection: container not found (\"c\")",
        ),
        ("p/exec?command=x", V5, "400 you must specify at least 1 of stdin, stdout, stderr"),
        ("p/exec?stdout=1", V5, "400 you must specify at least one command for the container"),
        (
            "p/exec?command=x&stdout=1",
            "v9",
            "400 unable to upgrade: none of the protocols [\"v9\"] is supported, only [\"v5.channel.k8s.io\", \"v4.channel.k8s.io\", \"v4.base64.channel.k8s.io\", \"channel.k8s.io\", \"base64.channel.k8s.io\", \"\"]",
        ),
    ] {
        let refused = open(&api, &format!("{PODS}/{path}"), protocol).await.err().unwrap();
        assert_eq!(refused, expected, "{path}");
    }
    let path = format!("{PODS}/p/exec?command=say&stdout=1");
    let plain = api.get(&path).await.refused();
    assert_eq!(plain, (400, "Upgrade request required".to_owned()));
    let headers = [
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("sec-websocket-protocol", V5),
    ];
    let inside = api.call(http::Method::GET, &path, &headers, "").await.refused();
    assert_eq!((inside.0, inside.1.contains("no HTTP/1.1 connection")), (400, true));
}

#[tokio::test]
async fn a_client_that_violates_the_protocol_ends_only_its_own_stream() {
    let api = api().await;
    let path = format!("{PODS}/p/exec?command=cat&stdin=1&stdout=1");
    let broken = [
        Message::text("no text is spoken"),
        Message::Binary(vec![0; 2 << 20].into()),
        Message::Close(None),
    ];
    for message in broken {
        let mut client = open(&api, &path, V5).await.unwrap();
        // The server may close the connection in the middle of a message that is too large.
        let _ = client.send(message).await;
        let (output, ..) = rest(&mut client).await;
        assert_eq!(output, "");
    }
    // Hundreds of clients at once, none of which reads or closes its stream.
    let mut silent = Vec::new();
    for _ in 0..300 {
        silent.push(open(&api, &path, V5).await.unwrap());
    }
    let path = format!("{PODS}/p/exec?command=say&command=x&stdout=1");
    let mut client = open(&api, &path, V5).await.unwrap();
    assert_eq!(rest(&mut client).await.0, "x");
    drop(silent);
    // Streams end with the server.
    let path = format!("{PODS}/p/exec?command=cat&stdin=1&stdout=1");
    let mut client = open(&api, &path, V5).await.unwrap();
    api.stop.cancel();
    assert_eq!(rest(&mut client).await.2, Value::Null);
}

#[tokio::test(start_paused = true)]
async fn a_client_without_pongs_is_disconnected() {
    let api = api().await;
    let path = format!("{PODS}/p/exec?command=cat&stdin=1&stdout=1");
    let mut client = open(&api, &path, V5).await.unwrap();
    // Without a reader, no ping is answered.
    tokio::time::sleep(std::time::Duration::from_mins(2)).await;
    assert_eq!(rest(&mut client).await.2, Value::Null);
}
