//! Refusals of invalid bodies, with kube-apiserver's texts.

use mainstay_object::{Gvk, Status};
use mainstay_schema::strict;
use std::fmt::{self, Write as _};

/// 400: the body does not decode as the kind.
pub(super) fn cannot_handle(gvk: &Gvk, why: impl fmt::Display) -> Status {
    Status::bad_request(strict::cannot_be_handled(&gvk.version, &gvk.kind, why))
}

/// 400: the body has no recognizable kind.
pub(super) fn unrecognized(kind: &str, why: impl fmt::Display, body: &[u8]) -> Status {
    Status::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): {why} ({})",
        summary(body)
    ))
}

/// The first bytes of a body, as kube-apiserver prints them.
fn summary(body: &[u8]) -> String {
    const MAX_LENGTH: usize = 30;
    let prefix = &body[..body.len().min(MAX_LENGTH)];
    let text = match body.first() {
        None => return "<empty>".to_owned(),
        Some(b'{') => String::from_utf8_lossy(prefix).into_owned(),
        Some(_) => prefix.iter().fold(String::new(), |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        }),
    };
    if body.len() > MAX_LENGTH { format!("{text} ...") } else { text }
}

/// The error of kube-apiserver's search for `apiVersion` and `kind`, which comes first.
pub(super) fn no_kind(why: impl fmt::Display) -> String {
    format!("couldn't get version/kind; json parse error: {why}")
}
