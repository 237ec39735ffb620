//! What a client can ask this server for.
//!
//! Everything is made from one snapshot of the kinds, and the large answers are kept with that
//! snapshot: a definition that adds kinds makes a new snapshot, so no answer can be stale and every
//! `ETag` and hash changes exactly with the content.

mod aggregated;
mod legacy;
mod openapi;

use crate::http::answer::Answer;
use crate::http::negotiate::{self, Form, Offer};
use crate::registry::Kinds;
use bytes::Bytes;
use http::StatusCode;
use mainstay_object::Status;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::sync::OnceLock;

pub(crate) use legacy::{core_versions, group, group_version, root, version};
pub(crate) use openapi::{document, index, swagger};

/// An encoded answer and its entity tag.
type Tagged = (Bytes, String);

/// The large answers made from one snapshot, each made when first asked for.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    core_v2: OnceLock<Tagged>,
    core_v2beta1: OnceLock<Tagged>,
    groups_v2: OnceLock<Tagged>,
    groups_v2beta1: OnceLock<Tagged>,
    openapi_index: OnceLock<Tagged>,
}

/// Facts of a request that discovery depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    /// `Accept`.
    pub(crate) accept: Option<&'a str>,
    /// `If-None-Match`.
    pub(crate) known: Option<&'a str>,
}

/// `/api` or `/apis`: aggregated if the client accepts it, else the plain list of groups.
pub(crate) fn roots(kinds: &Kinds, core: bool, asked: Asked<'_>) -> Result<Answer, Status> {
    let answers = &kinds.answers;
    let (slot, version, content_type) = match negotiate::choose(asked.accept, Offer::Discovery)? {
        Form::Discovery("v2") => (
            if core { &answers.core_v2 } else { &answers.groups_v2 },
            "v2",
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        ),
        Form::Discovery(_) => (
            if core { &answers.core_v2beta1 } else { &answers.groups_v2beta1 },
            "v2beta1",
            "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
        ),
        _ if core => return Ok(core_versions()),
        _ => return Ok(legacy::groups(kinds)),
    };
    let (bytes, etag) = slot.get_or_init(|| tagged(&aggregated::list(kinds, core, version)));
    let mut answer = unless_known(bytes, etag, asked);
    answer.content_type = content_type;
    Ok(answer)
}

fn tagged(value: &Value) -> Tagged {
    let bytes: Bytes = value.to_string().into();
    let etag = format!("\"{}\"", digest(&bytes));
    (bytes, etag)
}

/// SHA-256 in upper-case hexadecimal, as the original's hashes look.
fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut text, byte| {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02X}");
        text
    })
}

/// The answer, or 304 if the client has it.
fn unless_known(bytes: &Bytes, etag: &str, asked: Asked<'_>) -> Answer {
    let same = asked.known.is_some_and(|known| known.split(',').any(|one| one.trim() == etag));
    let mut answer = if same {
        Answer::bytes(StatusCode::NOT_MODIFIED, Bytes::new())
    } else {
        Answer::bytes(StatusCode::OK, bytes.clone())
    };
    answer.etag = Some(etag.to_owned());
    answer
}
