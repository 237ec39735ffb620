//! A minimal SPDY client, and hostile ones.

use super::client::connect;
use super::{PODS, pod, running, set_container_status};
use crate::harness::Api;
use crate::streams::client::Shell;
use mainstay_streams::PodConnection;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// Timeout of a wait; longer than every timeout of the server.
const TIMEOUT: Duration = Duration::from_secs(50);

/// A SPDY client. It sends stored deflate blocks, without compression.
pub(super) struct Spdy {
    wire: Box<dyn PodConnection>,
    begun: bool,
    next: u32,
    rest: Vec<u8>,
}

/// A frame of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    Reply(u32),
    Data { stream: u32, bytes: Vec<u8>, last: bool },
    Reset(u32, u32),
    Ping(u32),
    GoAway(u32),
    Window(u32, u32),
}

pub(super) fn control(kind: u16, flags: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap();
    let mut frame = [[0x80, 3], kind.to_be_bytes()].concat();
    frame.extend((u32::from(flags) << 24 | length).to_be_bytes());
    frame.extend(payload);
    frame
}

pub(super) fn encode_numbers(all: &[u32]) -> Vec<u8> {
    all.iter().flat_map(|number| number.to_be_bytes()).collect()
}

impl Spdy {
    pub(super) fn new(wire: impl PodConnection + 'static) -> Self {
        let wire = Box::new(wire);
        Self { wire, begun: false, next: 1, rest: Vec::new() }
    }

    pub(super) async fn write(&mut self, bytes: &[u8]) {
        self.wire.write_all(bytes).await.unwrap();
        self.wire.flush().await.unwrap();
    }

    /// Encodes a header block.
    pub(super) fn block(&mut self, headers: &[(&str, &str)]) -> Vec<u8> {
        let mut plain = encode_numbers(&[u32::try_from(headers.len()).unwrap()]);
        for text in headers.iter().flat_map(|(name, value)| [name, value]) {
            plain.extend(u32::try_from(text.len()).unwrap().to_be_bytes());
            plain.extend(text.as_bytes());
        }
        let mut block = Vec::new();
        if !std::mem::replace(&mut self.begun, true) {
            block.extend([0x78, 0xbb, 0xe3, 0xc6, 0xa7, 0xc2]);
        }
        let length = u16::try_from(plain.len()).unwrap();
        block.push(0);
        block.extend(length.to_le_bytes());
        block.extend((!length).to_le_bytes());
        block.extend(plain);
        block
    }

    /// Opens a stream; returns its id.
    pub(super) async fn open(&mut self, headers: &[(&str, &str)]) -> u32 {
        let stream = self.next;
        self.next += 2;
        let block = self.block(headers);
        let payload = [encode_numbers(&[stream, 0]), vec![0, 0], block].concat();
        self.write(&control(1, 0, &payload)).await;
        stream
    }

    pub(super) async fn data(&mut self, stream: u32, bytes: &[u8], last: bool) {
        let length = u32::try_from(bytes.len()).unwrap();
        self.write(&encode_numbers(&[stream, u32::from(last) << 24 | length])).await;
        self.write(bytes).await;
    }

    /// The next frame; none at the end of the connection.
    pub(super) async fn frame(&mut self) -> Option<Frame> {
        let head = self.bytes(8).await?;
        let number =
            |bytes: &[u8], at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
        let length = usize::try_from(number(&head, 4) & 0x00ff_ffff).unwrap();
        let payload = self.bytes(length).await?;
        if head[0] & 0x80 == 0 {
            let last = head[4] & 1 != 0;
            return Some(Frame::Data { stream: number(&head, 0), bytes: payload, last });
        }
        assert_eq!(head[..2], [0x80, 3]);
        let first = number(&payload, 0);
        Some(match head[3] {
            2 => Frame::Reply(first),
            3 => Frame::Reset(first, number(&payload, 4)),
            6 => Frame::Ping(first),
            7 => Frame::GoAway(number(&payload, 4)),
            9 => Frame::Window(first, number(&payload, 4)),
            kind => panic!("a frame of the kind {kind}"),
        })
    }

    async fn bytes(&mut self, count: usize) -> Option<Vec<u8>> {
        while self.rest.len() < count {
            let mut buffer = [0; 4096];
            let read = tokio::time::timeout(TIMEOUT, self.wire.read(&mut buffer)).await;
            match read.expect("a frame") {
                Ok(0) | Err(_) => return None,
                Ok(read) => self.rest.extend(&buffer[..read]),
            }
        }
        Some(self.rest.drain(..count).collect())
    }

    /// The data of each stream, until these streams or the connection have ended.
    pub(super) async fn until(&mut self, mut open: Vec<u32>) -> HashMap<u32, String> {
        let mut texts: HashMap<u32, String> = HashMap::new();
        while !open.is_empty() {
            match self.frame().await {
                Some(Frame::Data { stream, bytes, last }) => {
                    texts.entry(stream).or_default().push_str(str::from_utf8(&bytes).unwrap());
                    if last {
                        open.retain(|one| *one != stream);
                    }
                }
                Some(Frame::Reset(stream, _)) => open.retain(|one| *one != stream),
                Some(_) => {}
                None => break,
            }
        }
        texts
    }
}

/// Opens an `exec` over SPDY.
async fn exec(api: &Api, query: &str, protocol: &str) -> Result<Spdy, String> {
    let headers = [("upgrade", "SPDY/3.1"), ("x-stream-protocol-version", protocol)];
    let path = format!("{PODS}/p/exec?{query}");
    let (wire, answered) = connect(api, "POST", &path, &headers).await?;
    assert_eq!(answered["x-stream-protocol-version"], protocol);
    assert_eq!(answered["upgrade"], "SPDY/3.1");
    Ok(Spdy::new(wire))
}

async fn api() -> Api {
    let api = Api::new().await;
    pod(&api, "p", &["c"], true).await;
    set_container_status(&api, "p", running()).await;
    api.server.add_in_process_pod("default", "p", Arc::new(Shell));
    api
}

#[tokio::test]
async fn an_exec_over_spdy_has_a_stream_for_each_channel() {
    let api = api().await;
    for (protocol, failure) in [
        ("v4.channel.k8s.io", "NonZeroExitCode"),
        ("v3.channel.k8s.io", "command terminated with non-zero exit code: exit status 3"),
        ("v2.channel.k8s.io", "command terminated with non-zero exit code: exit status 3"),
        ("channel.k8s.io", "command terminated with non-zero exit code: exit status 3"),
    ] {
        let query = "command=say&command=a%20b&stdout=1&stderr=1";
        let mut client = exec(&api, query, protocol).await.unwrap();
        let error = client.open(&[("streamtype", "error")]).await;
        let output = client.open(&[("streamType", "stdout")]).await;
        let errors = client.open(&[("streamtype", "stderr")]).await;
        let texts = client.until(vec![error, output, errors]).await;
        assert_eq!((texts[&output].as_str(), texts[&errors].as_str()), ("a b", "done"));
        let success =
            if protocol.starts_with("v4") { r#"{"metadata":{},"status":"Success"}"# } else { "" };
        assert_eq!(texts[&error], success, "{protocol}");
        let mut client = exec(&api, "command=exit&command=3&stdout=1", protocol).await.unwrap();
        let error = client.open(&[("streamtype", "error")]).await;
        let output = client.open(&[("streamtype", "stdout")]).await;
        let texts = client.until(vec![error, output]).await;
        assert!(texts[&error].contains(failure), "{protocol}: {texts:?}");
    }
}

#[tokio::test]
async fn an_exec_over_spdy_supports_input_and_terminal_sizes() {
    let api = api().await;
    let protocol = "v4.channel.k8s.io";
    let mut client = exec(&api, "command=cat&stdin=1&stdout=1", protocol).await.unwrap();
    let error = client.open(&[("streamtype", "error")]).await;
    let input = client.open(&[("streamtype", "stdin")]).await;
    let output = client.open(&[("streamtype", "stdout")]).await;
    client.data(input, b"one ", false).await;
    client.data(input, b"two", true).await;
    let texts = client.until(vec![error, output]).await;
    assert_eq!(texts[&output], "one two");
    // Terminal sizes arrive in parts, and several at once.
    let path = format!("{PODS}/p/attach?stdin=1&stdout=1&tty=1");
    let headers = [("upgrade", "spdy/3.1"), ("x-stream-protocol-version", "v9, v4.channel.k8s.io")];
    let (wire, _) = connect(&api, "GET", &path, &headers).await.unwrap();
    let mut client = Spdy::new(wire);
    let error = client.open(&[("streamtype", "error")]).await;
    client.open(&[("streamtype", "stdin")]).await;
    let output = client.open(&[("streamtype", "stdout")]).await;
    let resize = client.open(&[("streamtype", "resize")]).await;
    client.data(resize, br#"{"Width":80,"#, false).await;
    client.data(resize, br#""Height":25}{"Width":1"#, false).await;
    let texts = client.until(vec![error, output]).await;
    assert_eq!(texts[&output], "attached 80x25");
}

#[tokio::test]
async fn unsupported_stream_protocols_are_refused() {
    let api = api().await;
    for (headers, expected) in [
        (
            vec![("upgrade", "SPDY/3.1")],
            "400 unable to upgrade: header X-Stream-Protocol-Version names no protocol",
        ),
        (
            vec![("upgrade", "SPDY/3.1"), ("x-stream-protocol-version", "v9, v8")],
            "403 unable to upgrade: unable to negotiate protocol: client supports [v9 v8], server accepts [v4.channel.k8s.io v3.channel.k8s.io v2.channel.k8s.io channel.k8s.io]",
        ),
        (
            vec![("upgrade", "h2c")],
            "400 unable to upgrade: h2c is not supported, only websocket and SPDY/3.1 are",
        ),
        (vec![], "400 Upgrade request required"),
    ] {
        let path = format!("{PODS}/p/exec?command=x&stdout=1");
        let refused = connect(&api, "POST", &path, &headers).await.err().unwrap();
        assert_eq!(refused, expected);
    }
}

/// The client of a process that copies its input, with its streams: errors, input, output.
async fn cat(api: &Api) -> (Spdy, [u32; 3]) {
    let mut client = exec(api, "command=cat&stdin=1&stdout=1", "v4.channel.k8s.io").await.unwrap();
    let mut streams = [0; 3];
    for (place, kind) in streams.iter_mut().zip(["error", "stdin", "stdout"]) {
        *place = client.open(&[("streamtype", kind)]).await;
        assert_eq!(client.frame().await, Some(Frame::Reply(*place)));
    }
    (client, streams)
}

#[tokio::test]
async fn a_spdy_protocol_violation_ends_the_connection() {
    let api = api().await;
    let cut = |mut frame: Vec<u8>| {
        frame.truncate(frame.len() - 1);
        frame
    };
    let mut version = control(6, 0, &encode_numbers(&[1]));
    version[1] = 2;
    for (what, bytes) in [
        (
            "a giant control frame",
            control(4, 0, &[])[..5].iter().copied().chain([0xff; 3]).collect(),
        ),
        ("another version", version),
        ("data for no stream", encode_numbers(&[0, 0])),
        ("a short ping", control(6, 0, &[1, 2])),
        ("a short reset", control(3, 0, &[])),
        ("settings that are not there", control(4, 0, &encode_numbers(&[1_000_000]))),
        ("a window of all that is too large", control(9, 0, &encode_numbers(&[0, 0x7fff_ffff]))),
        ("a first window that is too large", control(4, 0, &encode_numbers(&[1, 7, 0x8000_0000]))),
        (
            "a stream opened twice",
            control(
                1,
                0,
                &[encode_numbers(&[1, 0]), vec![0; 2], vec![0, 4, 0, 0xfb, 0xff, 0, 0, 0, 0]]
                    .concat(),
            ),
        ),
        (
            "a stream of the server's",
            control(
                1,
                0,
                &[encode_numbers(&[8, 0]), vec![0; 2], vec![0, 4, 0, 0xfb, 0xff, 0, 0, 0, 0]]
                    .concat(),
            ),
        ),
        (
            "headers that are no headers",
            control(1, 0, &[encode_numbers(&[9, 0]), vec![7; 20]].concat()),
        ),
        ("headers of no stream", control(8, 0, &[encode_numbers(&[1]), vec![7; 20]].concat())),
    ] {
        let (mut client, _) = cat(&api).await;
        client.write(&bytes).await;
        assert_eq!(client.frame().await, Some(Frame::GoAway(1)), "{what}");
        assert_eq!(client.frame().await, None, "{what}");
    }
    // An incomplete frame ends the connection, too.
    let (mut client, _) = cat(&api).await;
    client.write(&cut(control(6, 0, &encode_numbers(&[1])))).await;
    client.wire.shutdown().await.unwrap();
    while client.frame().await.is_some() {}
}

#[tokio::test]
async fn an_endless_spdy_header_block_ends_the_connection() {
    let api = api().await;
    let (mut client, _) = cat(&api).await;
    let mut compress = flate2::Compress::new(flate2::Compression::best(), false);
    let mut packed = Vec::with_capacity(16_000);
    let zeros = vec![0; 12 << 20];
    compress.compress_vec(&zeros, &mut packed, flate2::FlushCompress::Sync).unwrap();
    let payload = [encode_numbers(&[7, 0]), vec![0; 2], packed].concat();
    client.write(&control(1, 0, &payload)).await;
    assert_eq!(client.frame().await, Some(Frame::GoAway(1)));
}

#[tokio::test]
async fn unknown_spdy_frames_are_ignored() {
    let api = api().await;
    let (mut client, [error, input, output]) = cat(&api).await;
    let own = control(6, 0, &encode_numbers(&[3]));
    for bytes in [
        control(5, 0, &[]),
        control(200, 9, &[1; 100]),
        control(4, 0, &encode_numbers(&[0])),
        control(9, 0, &encode_numbers(&[99, 1])),
        control(3, 0, &encode_numbers(&[99, 1])),
        control(6, 0, &encode_numbers(&[2])),
        encode_numbers(&[99, 0]),
        own.clone(),
    ] {
        client.write(&bytes).await;
    }
    assert_eq!(client.frame().await, Some(Frame::Ping(3)));
    // An unexpected stream is reset, and the others continue.
    let odd = client.open(&[("streamtype", "odd")]).await;
    assert_eq!(client.frame().await, Some(Frame::Reset(odd, 5)));
    client.data(odd, b"x", false).await;
    client.data(input, b"still here", true).await;
    assert_eq!(client.until(vec![error, output]).await[&output], "still here");
}

#[tokio::test]
async fn the_number_of_spdy_streams_is_limited() {
    let api = api().await;
    let (mut client, _) = cat(&api).await;
    let mut refused = 0;
    for _ in 0..1000 {
        let stream = client.open(&[("streamtype", "stdout")]).await;
        // Accepted streams have no process, and end at once.
        match client.frame().await {
            Some(Frame::Reply(id)) => assert_eq!(id, stream),
            Some(Frame::Reset(id, 3)) => {
                assert_eq!(id, stream);
                refused += 1;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(refused, 0);
    let path = format!("{PODS}/p/exec?command=cat&stdin=1&stdout=1&stderr=1&tty=0");
    let headers = [("upgrade", "SPDY/3.1"), ("x-stream-protocol-version", "v4.channel.k8s.io")];
    drop(connect(&api, "POST", &path, &headers).await.unwrap());
}

#[tokio::test]
async fn spdy_flow_control_windows_of_the_client_are_respected() {
    let api = api().await;
    let (mut client, [_, input, output]) = cat(&api).await;
    // At first ten bytes, in all streams.
    client.write(&control(4, 0, &encode_numbers(&[1, 7, 10]))).await;
    client.data(input, b"0123456789abcdef", false).await;
    let mut text = String::new();
    while text.len() < 10 {
        if let Some(Frame::Data { bytes, .. }) = client.frame().await {
            text.push_str(str::from_utf8(&bytes).unwrap());
        }
    }
    assert_eq!(text, "0123456789");
    client.write(&control(6, 0, &encode_numbers(&[5]))).await;
    assert_eq!(client.frame().await, Some(Frame::Ping(5)), "no more than that comes");
    client.write(&control(9, 0, &encode_numbers(&[output, 4]))).await;
    let Some(Frame::Data { bytes, .. }) = client.frame().await else { panic!() };
    assert_eq!(bytes, b"abcd");
    // More than a window can have.
    for _ in 0..2 {
        client.write(&control(9, 0, &encode_numbers(&[output, 0x7fff_ffff]))).await;
    }
    let mut last = client.frame().await;
    while let Some(Frame::Data { .. }) = last {
        last = client.frame().await;
    }
    assert_eq!(last, Some(Frame::Reset(output, 7)));
}

#[tokio::test]
async fn the_server_updates_spdy_windows_as_data_is_read() {
    let api = api().await;
    let (mut client, [_, input, _]) = cat(&api).await;
    client.data(input, &vec![b'x'; 40_000], false).await;
    let (mut one, mut all) = (0, 0);
    while one == 0 || all == 0 {
        match client.frame().await.unwrap() {
            Frame::Window(0, more) => all += more,
            Frame::Window(stream, more) => {
                assert_eq!(stream, input);
                one += more;
            }
            _ => {}
        }
    }
    assert!((32 * 1024..=40_000).contains(&one) && (32 * 1024..=40_000).contains(&all));
}

#[tokio::test(start_paused = true)]
async fn spdy_clients_without_pings_or_streams_are_disconnected() {
    let api = api().await;
    let (mut client, _) = cat(&api).await;
    let mut lazy = exec(&api, "command=cat&stdin=1&stdout=1", "v4.channel.k8s.io").await.unwrap();
    tokio::time::sleep(Duration::from_mins(2)).await;
    while client.frame().await.is_some() {}
    while lazy.frame().await.is_some() {}
}
