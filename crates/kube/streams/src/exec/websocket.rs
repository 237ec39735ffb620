//! A process over WebSocket: each message has the number of its channel in front.
//!
//! | Channel | Direction | What |
//! |---|---|---|
//! | 0 | in | standard input |
//! | 1, 2 | out | standard output, standard error |
//! | 3 | out | how it ended, once |
//! | 4 | in | the size of the terminal, as JSON |
//! | 255 | in | the number of a channel whose input has ended (version 5 only) |
//!
//! In the protocols with `base64` in their name, messages are texts: a digit, and the rest encoded.

use super::super::channels::{self, Code, Sink};
use super::super::upgrade::{Connection, socket};
use super::{Channel, Client, Job, Size, Tell, V1_BASE64, V4_BASE64, V5};
use bytes::Bytes;

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const STATUS: u8 = 3;
const RESIZE: u8 = 4;
const CLOSE: u8 = 255;

impl Tell for Sink {
    async fn tell(&self, channel: Channel, bytes: Bytes) -> Option<()> {
        let channel = match channel {
            Channel::Output => STDOUT,
            Channel::Errors => STDERR,
            Channel::Status => STATUS,
        };
        self.send(channel, &bytes).await
    }
}

/// Runs the process until it has ended and all is said, or the client has gone.
pub(super) async fn session(connection: Connection, job: Job, client: Client) {
    let code = match job.protocol {
        V4_BASE64 | V1_BASE64 => Code::Base64,
        _ => Code::Binary,
    };
    let closes = job.protocol == V5;
    let (sink, mut source) = channels::split(socket(connection).await, code);
    // Clients take the first message for the sign that the streams are there.
    let first = match (&job.output, &job.errors) {
        (Some(_), _) => STDOUT,
        (None, Some(_)) => STDERR,
        (None, None) => STATUS,
    };
    let ended = async {
        if sink.send(first, &[]).await.is_some() {
            job.run(&sink).await;
        }
    };
    tokio::select! {
        () = ended => {}
        () = listen(&mut source, client, closes) => {}
        () = sink.ask() => {}
    }
    channels::goodbye(sink, source).await;
}

/// Takes what the client sends until it has gone or breaks the protocol.
async fn listen(source: &mut channels::Source, mut client: Client, closes: bool) {
    while let Some((channel, bytes)) = source.next().await {
        match channel {
            STDIN => client.types(&bytes).await,
            RESIZE => {
                if let Ok(size) = serde_json::from_slice::<Size>(&bytes) {
                    client.resize(&size);
                }
            }
            CLOSE if closes && *bytes == [STDIN] => client.input = None,
            _ => {}
        }
    }
}
