//! Unauthorized requests: anonymous, forged, disguised, smuggled, escalating, and from web pages.

mod anonymous;
mod escalation;
mod forged;
mod local;
mod paths;
mod smuggling;

use crate::report::Report;
use crate::server::{CANARY, Server};
use crate::wire::{Connection, Identity, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::path::Path;

/// Attacks the API and the other ports of one cluster with operators.
pub(crate) async fn run(program: &Path, report: &mut Report) -> anyhow::Result<()> {
    let folder = tempfile::tempdir()?;
    let catalog = escalation::write_catalog(folder.path())?;
    let mut server =
        Server::start(program, folder.path(), &["--in-memory", "--catalog", &catalog]).await?;
    let attacker = server.restricted_user().await?;
    anonymous::run(&server, report).await?;
    forged::tokens(&server, report).await?;
    forged::certificates(&server, report).await?;
    forged::headers(&server, &attacker, report).await?;
    paths::run(&server, &attacker, report).await?;
    smuggling::run(&server, &attacker, report).await?;
    escalation::requests(&server, &attacker, report).await?;
    escalation::through_controllers(&server, report).await?;
    local::run(program, &server, folder.path(), report).await?;
    server.alive().await?;
    server.stop().await
}

/// Whether a response contains the victim's Secret, as text or as the API encodes it.
fn shows_canary(body: &[u8]) -> bool {
    let encoded = STANDARD.encode(CANARY);
    [CANARY.as_bytes(), encoded.as_bytes()]
        .iter()
        .any(|needle| body.windows(needle.len()).any(|window| window == *needle))
}

/// Requests with one identity, on connections that are reopened when the server closes them.
struct Client<'a> {
    server: &'a Server,
    identity: Identity,
    connection: Option<Connection>,
}

impl<'a> Client<'a> {
    fn new(server: &'a Server, identity: &Identity) -> Self {
        Self { server, identity: identity.clone(), connection: None }
    }

    async fn request(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> anyhow::Result<Response> {
        // The server may just have closed the connection: sending again does not repeat a rejected
        // request.
        if let Some(connection) = &mut self.connection
            && let Ok(response) = connection.request(method, path, headers, body).await
        {
            self.forget_if_closed(&response);
            return Ok(response);
        }
        let mut connection = self.server.connect(&self.identity).await?;
        let response = connection.request(method, path, headers, body).await?;
        self.connection = Some(connection);
        self.forget_if_closed(&response);
        Ok(response)
    }

    fn forget_if_closed(&mut self, response: &Response) {
        if response.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close")) {
            self.connection = None;
        }
    }
}
