//! `exec` and `attach` over WebSocket: each message begins with the number of its channel.
//!
//! | Channel | Direction | Content |
//! |---|---|---|
//! | 0 | in | standard input |
//! | 1, 2 | out | standard output, standard error |
//! | 3 | out | exit status, once |
//! | 4 | in | the size of the terminal, as JSON |
//! | 255 | in | the number of a channel whose input ended (version 5 only) |
//!
//! In the protocols with `base64` in their name, messages are text: a digit, then Base64.

use super::super::channels::{self, ChannelEncoding, ChannelSink, ChannelSource};
use super::super::upgrade::{UpgradedConnection, websocket_connection};
use super::{
    Channel, ClientInput, ClientOutput, ProcessRun, SizeMessage, V1_BASE64, V4_BASE64, V5,
};
use bytes::Bytes;

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const STATUS: u8 = 3;
const RESIZE: u8 = 4;
const CLOSE: u8 = 255;

impl ClientOutput for ChannelSink {
    async fn send_to(&self, channel: Channel, bytes: Bytes) -> Option<()> {
        let channel = match channel {
            Channel::Output => STDOUT,
            Channel::Errors => STDERR,
            Channel::Status => STATUS,
        };
        self.send(channel, &bytes).await
    }
}

/// Runs the process until its exit status is sent, or the client closes the connection.
pub(super) async fn serve(connection: UpgradedConnection, run: ProcessRun, client: ClientInput) {
    let encoding = match run.protocol {
        V4_BASE64 | V1_BASE64 => ChannelEncoding::Base64,
        _ => ChannelEncoding::Binary,
    };
    let has_close = run.protocol == V5;
    let (sink, mut source) = channels::split(websocket_connection(connection).await, encoding);
    // Clients take the first message as the sign that the streams are open.
    let first = match (&run.output, &run.errors) {
        (Some(_), _) => STDOUT,
        (None, Some(_)) => STDERR,
        (None, None) => STATUS,
    };
    let running = async {
        if sink.send(first, &[]).await.is_some() {
            run.run(&sink).await;
        }
    };
    tokio::select! {
        () = running => {}
        () = read_client(&mut source, client, has_close) => {}
        () = sink.send_pings() => {}
    }
    channels::close(sink, source).await;
}

/// Reads the input of the client until it closes the connection or breaks the protocol.
async fn read_client(source: &mut ChannelSource, mut client: ClientInput, has_close: bool) {
    while let Some((channel, bytes)) = source.next().await {
        match channel {
            STDIN => client.write_stdin(&bytes).await,
            RESIZE => {
                if let Ok(size) = serde_json::from_slice::<SizeMessage>(&bytes) {
                    client.resize(&size);
                }
            }
            CLOSE if has_close && *bytes == [STDIN] => client.input = None,
            _ => {}
        }
    }
}
