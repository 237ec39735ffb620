//! Why a body cannot be read, in the words of the original.

use mainstay_object::{Gvk, Status};
use mainstay_schema::strict;
use std::fmt::{self, Write as _};

/// 400: the body cannot be read as the kind.
pub(super) fn cannot_handle(gvk: &Gvk, why: impl fmt::Display) -> Status {
    Status::bad_request(strict::cannot_be_handled(&gvk.version, &gvk.kind, why))
}

/// 400: nobody knows what the body is.
pub(super) fn unrecognized(kind: &str, why: impl fmt::Display, body: &[u8]) -> Status {
    Status::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): {why} ({})",
        summary(body)
    ))
}

/// The first bytes of a body, as the original shows them.
fn summary(body: &[u8]) -> String {
    const SHOWN: usize = 30;
    let shown = &body[..body.len().min(SHOWN)];
    let text = match body.first() {
        None => return "<empty>".to_owned(),
        Some(b'{') => String::from_utf8_lossy(shown).into_owned(),
        Some(_) => shown.iter().fold(String::new(), |mut text, byte| {
            // Writing to a text does not fail.
            let _ = write!(text, "{byte:02x}");
            text
        }),
    };
    if body.len() > SHOWN { format!("{text} ...") } else { text }
}

/// Where the original stops that looks for `apiVersion` and `kind` first.
pub(super) fn no_kind(why: impl fmt::Display) -> String {
    format!("couldn't get version/kind; json parse error: {why}")
}
