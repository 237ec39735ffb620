//! A process over SPDY: each channel is a stream, and says which one in its header `streamType`.

use super::super::spdy::{self, Headers, Input, Output, Session, Stream};
use super::super::upgrade::Connection;
use super::{Channel, Client, Job, Size, Tell, V1, V2};
use bytes::Bytes;
use std::time::Duration;
use tokio::time::timeout;

/// How long the client may take to open the streams that it wants.
const CREATION: Duration = Duration::from_secs(30);
/// Bytes of a size of the terminal.
const SIZE: usize = 1024;

/// The streams of a process.
#[derive(Default)]
struct Streams {
    input: Option<Stream>,
    output: Option<Stream>,
    errors: Option<Stream>,
    status: Option<Stream>,
    resize: Option<Stream>,
}

/// The streams on which something is told.
struct Told {
    output: Option<Output>,
    errors: Option<Output>,
    status: Option<Output>,
}

impl Tell for Told {
    async fn tell(&self, channel: Channel, bytes: Bytes) -> Option<()> {
        let stream = match channel {
            Channel::Output => &self.output,
            Channel::Errors => &self.errors,
            Channel::Status => &self.status,
        };
        stream.as_ref()?.write(bytes).await
    }
}

/// Runs the process until it has ended and all is said, or the client has gone.
pub(super) async fn session(connection: Connection, job: Job, client: Client) {
    let (session, work) = spdy::open(connection, |headers: &Headers| {
        matches!(headers.get("streamtype"), "stdin" | "stdout" | "stderr" | "error" | "resize")
    });
    tokio::join!(serve(session, job, client), work);
}

async fn serve(mut session: Session, job: Job, mut client: Client) {
    let sizes = job.process.tty && !matches!(job.protocol, V1 | V2);
    let wanted = [client.input.is_some(), job.output.is_some(), job.errors.is_some(), sizes];
    let count = 1 + wanted.into_iter().filter(|flag| *flag).count();
    let opened = timeout(CREATION, Streams::open(&mut session, count)).await;
    let Ok(Some(streams)) = opened else {
        session.end().await;
        return;
    };
    let Streams { input, output, errors, status, resize } = streams;
    let half = |stream: Option<Stream>| stream.map(|stream| stream.output);
    let mut told = Told { output: half(output), errors: half(errors), status: half(status) };
    let typing =
        listen(input.map(|stream| stream.input), resize.map(|stream| stream.input), &mut client);
    tokio::select! {
        () = job.run(&told) => {}
        // The client has gone; further streams are of no use.
        () = gone(&mut session) => {}
        () = typing => {}
    }
    for stream in [&mut told.output, &mut told.errors, &mut told.status].into_iter().flatten() {
        stream.end().await;
    }
    session.end().await;
}

/// Waits until the connection is over.
async fn gone(session: &mut Session) {
    while session.next().await.is_some() {}
}

impl Streams {
    /// Waits for so many streams; none if the client goes.
    async fn open(session: &mut Session, count: usize) -> Option<Self> {
        let mut streams = Self::default();
        for _ in 0..count {
            let stream = session.next().await?;
            let place = match stream.headers.get("streamtype") {
                "stdin" => &mut streams.input,
                "stdout" => &mut streams.output,
                "stderr" => &mut streams.errors,
                "resize" => &mut streams.resize,
                _ => &mut streams.status,
            };
            *place = Some(stream);
        }
        Some(streams)
    }
}

/// Takes what the client sends; never ends by itself.
async fn listen(input: Option<Input>, resize: Option<Input>, client: &mut Client) {
    let sizes = client.sizes.clone();
    let resizing = async {
        let Some(mut resize) = resize else { return };
        let mut text = Vec::new();
        while let Some(bytes) = resize.read().await {
            text.extend_from_slice(&bytes);
            // Documents come one behind the other, in parts that mean nothing.
            let mut documents = serde_json::Deserializer::from_slice(&text).into_iter::<Size>();
            let sizer = Client { input: None, sizes: sizes.clone() };
            while let Some(Ok(size)) = documents.next() {
                sizer.resize(&size);
            }
            let read = documents.byte_offset();
            text.drain(..read);
            if text.len() > SIZE {
                return;
            }
        }
    };
    let typing = async {
        if let Some(mut input) = input {
            while let Some(bytes) = input.read().await {
                client.types(&bytes).await;
            }
        }
        client.input = None;
    };
    tokio::join!(resizing, typing);
    std::future::pending::<()>().await;
}
