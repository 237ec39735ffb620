//! `exec` and `attach` over SPDY: each channel is a stream with its type in the header
//! `streamType`.

use super::super::spdy::{self, Headers, Session, Stream, StreamInput, StreamOutput};
use super::super::upgrade::UpgradedConnection;
use super::{Channel, ClientInput, ClientOutput, ProcessRun, SizeMessage, V1, V2};
use bytes::Bytes;
use std::time::Duration;
use tokio::time::timeout;

/// How long the client may take to open its streams.
const STREAM_TIMEOUT: Duration = Duration::from_secs(30);
/// The longest message with a terminal size, in bytes.
const MAX_SIZE_MESSAGE: usize = 1024;

/// The streams of a process.
#[derive(Default)]
struct ProcessStreams {
    input: Option<Stream>,
    output: Option<Stream>,
    errors: Option<Stream>,
    status: Option<Stream>,
    resize: Option<Stream>,
}

/// The streams to the client.
struct OutputStreams {
    output: Option<StreamOutput>,
    errors: Option<StreamOutput>,
    status: Option<StreamOutput>,
}

impl ClientOutput for OutputStreams {
    async fn send_to(&self, channel: Channel, bytes: Bytes) -> Option<()> {
        let stream = match channel {
            Channel::Output => &self.output,
            Channel::Errors => &self.errors,
            Channel::Status => &self.status,
        };
        stream.as_ref()?.write(bytes).await
    }
}

/// Runs the process until its exit status is sent, or the client closes the connection.
pub(super) async fn serve(connection: UpgradedConnection, run: ProcessRun, client: ClientInput) {
    let (session, io) = spdy::open(connection, |headers: &Headers| {
        matches!(headers.get("streamtype"), "stdin" | "stdout" | "stderr" | "error" | "resize")
    });
    tokio::join!(serve_session(session, run, client), io);
}

async fn serve_session(mut session: Session, run: ProcessRun, mut client: ClientInput) {
    let sizes = run.process.tty && !matches!(run.protocol, V1 | V2);
    let wanted = [client.input.is_some(), run.output.is_some(), run.errors.is_some(), sizes];
    let count = 1 + wanted.into_iter().filter(|flag| *flag).count();
    let opened = timeout(STREAM_TIMEOUT, ProcessStreams::open(&mut session, count)).await;
    let Ok(Some(streams)) = opened else {
        session.end().await;
        return;
    };
    let ProcessStreams { input, output, errors, status, resize } = streams;
    let output_of = |stream: Option<Stream>| stream.map(|stream| stream.output);
    let mut outputs = OutputStreams {
        output: output_of(output),
        errors: output_of(errors),
        status: output_of(status),
    };
    let reading = read_client(
        input.map(|stream| stream.input),
        resize.map(|stream| stream.input),
        &mut client,
    );
    tokio::select! {
        () = run.run(&outputs) => {}
        // After the client closed the connection, further streams are ignored.
        () = wait_for_close(&mut session) => {}
        () = reading => {}
    }
    for stream in
        [&mut outputs.output, &mut outputs.errors, &mut outputs.status].into_iter().flatten()
    {
        stream.end().await;
    }
    session.end().await;
}

/// Waits until the connection is closed.
async fn wait_for_close(session: &mut Session) {
    while session.next().await.is_some() {}
}

impl ProcessStreams {
    /// Waits for this many streams; none if the client closes the connection.
    async fn open(session: &mut Session, count: usize) -> Option<Self> {
        let mut streams = Self::default();
        for _ in 0..count {
            let stream = session.next().await?;
            let field = match stream.headers.get("streamtype") {
                "stdin" => &mut streams.input,
                "stdout" => &mut streams.output,
                "stderr" => &mut streams.errors,
                "resize" => &mut streams.resize,
                _ => &mut streams.status,
            };
            *field = Some(stream);
        }
        Some(streams)
    }
}

/// Reads the input of the client; never returns.
async fn read_client(
    input: Option<StreamInput>,
    resize: Option<StreamInput>,
    client: &mut ClientInput,
) {
    let sizes = client.sizes.clone();
    let resizing = async {
        let Some(mut resize) = resize else { return };
        let mut text = Vec::new();
        while let Some(bytes) = resize.read().await {
            text.extend_from_slice(&bytes);
            // Messages follow each other; the parts of the stream have no meaning.
            let mut documents =
                serde_json::Deserializer::from_slice(&text).into_iter::<SizeMessage>();
            let sizer = ClientInput { input: None, sizes: sizes.clone() };
            while let Some(Ok(size)) = documents.next() {
                sizer.resize(&size);
            }
            let read = documents.byte_offset();
            text.drain(..read);
            if text.len() > MAX_SIZE_MESSAGE {
                return;
            }
        }
    };
    let typing = async {
        if let Some(mut input) = input {
            while let Some(bytes) = input.read().await {
                client.write_stdin(&bytes).await;
            }
        }
        client.input = None;
    };
    tokio::join!(resizing, typing);
    std::future::pending::<()>().await;
}
