//! `opm init`: the `olm.package` blob of a new catalog.

use super::call::{Call, CommandIo, Failure};
use super::command::{Action, Arguments, Command};
use super::flags::Flag;
use super::render::UnknownOutput;
use super::{go, mediatype};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use mainstay_gocompat::json::{Html, quoted, text_of_bytes};
use std::io::Read;

/// The command.
pub(super) fn command() -> Command {
    Command {
        arguments: Arguments::Exactly(1),
        flags: vec![
            Flag::text(
                "default-channel",
                Some('c'),
                "the channel to subscribe to when none is named",
            ),
            Flag::text(
                "description",
                Some('d'),
                "file with a text about the operator, such as its README.md",
            ),
            Flag::text("icon", Some('i'), "file with the package's icon"),
            Flag::text("output", Some('o'), "output format (json|yaml)").with_default("json"),
        ],
        action: Some(Action::Sync(run)),
        ..Command::new(
            "init <packageName>",
            "Begin a file-based catalog with the blob of a package",
        )
    }
}

struct Icon {
    data: String,
    kind: &'static str,
}

fn run(call: &mut Call<'_, '_>) -> Result<(), Failure> {
    let output = call.flags.text("output");
    if !matches!(output, "json" | "yaml") {
        return Err(Failure::fatal(UnknownOutput { output: output.to_owned() }));
    }
    let icon = open(call.io, call.flags.text("icon"), "icon")?;
    let description = open(call.io, call.flags.text("description"), "description")?;
    let description = match description {
        None => Vec::new(),
        Some(file) => read(file, call.flags.text("description"), "description")?,
    };
    let icon = match icon {
        None => None,
        Some(file) => Some(detect_icon(&read(file, call.flags.text("icon"), "icon")?)?),
    };
    let name = call.argument(0);
    // Upstream writes blobs package by package, and skips a package without a name.
    if name.is_empty() {
        return Ok(());
    }
    let json = blob(name, call.flags.text("default-channel"), icon.as_ref(), &description);
    let text = if output == "json" { json } else { yaml(&json) };
    call.io.print(&text);
    Ok(())
}

fn open(io: &CommandIo<'_>, path: &str, what: &str) -> Result<Option<std::fs::File>, Failure> {
    if path.is_empty() {
        return Ok(None);
    }
    match std::fs::File::open(io.resolve_path(path)) {
        Ok(file) => Ok(Some(file)),
        Err(error) => {
            let why = mainstay_gocompat::io_error_text(&error);
            Err(Failure::Fatal(format!("open {what} file: open {path}: {why}")))
        }
    }
}

fn read(mut file: std::fs::File, path: &str, what: &str) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    match file.read_to_end(&mut bytes) {
        Ok(_) => Ok(bytes),
        Err(error) => {
            let why = mainstay_gocompat::io_error_text(&error);
            Err(Failure::Fatal(format!("read {what}: read {path}: {why}")))
        }
    }
}

fn detect_icon(bytes: &[u8]) -> Result<Icon, Failure> {
    if bytes.is_empty() {
        return Err(Failure::Fatal("detect icon mediatype: Empty buffer".to_owned()));
    }
    let kind = mediatype::detect(bytes);
    if !kind.starts_with("image/") {
        let kind = go::quote(kind);
        return Err(Failure::Fatal(format!("detected invalid type {kind}: not an image")));
    }
    Ok(Icon { data: BASE64_STANDARD.encode(bytes), kind })
}

/// The blob as JSON, with an indent of four, and the fields in the order of the Go struct.
fn blob(name: &str, channel: &str, icon: Option<&Icon>, description: &[u8]) -> String {
    let name = quoted(name);
    let channel = quoted(channel);
    let mut json = format!(
        "{{\n    \"schema\": \"olm.package\",\n    \"name\": {name},\n    \"defaultChannel\": {channel}"
    );
    if let Some(Icon { data, kind }) = icon {
        go::push(
            &mut json,
            format_args!(
                ",\n    \"icon\": {{\n        \"base64data\": \"{data}\",\n        \"mediatype\": \"{kind}\"\n    }}"
            ),
        );
    }
    if !description.is_empty() {
        go::push(
            &mut json,
            format_args!(",\n    \"description\": {}", text_of_bytes(description, Html::Plain)),
        );
    }
    json + "\n}\n"
}

fn yaml(json: &str) -> String {
    let value = serde_json::from_str(json).unwrap_or_default();
    format!("---\n{}", mainstay_yaml::to_string(&value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_blob_has_its_fields_in_order_without_empty_ones() {
        let icon = Icon { data: "QUJD".to_owned(), kind: "image/png" };
        let json = blob("kiwi", "a\"b", Some(&icon), b"<x>\n");
        assert_eq!(
            json,
            "{\n    \"schema\": \"olm.package\",\n    \"name\": \"kiwi\",\n    \"defaultChannel\": \"a\\\"b\",\n    \
             \"icon\": {\n        \"base64data\": \"QUJD\",\n        \"mediatype\": \"image/png\"\n    },\n    \
             \"description\": \"<x>\\n\"\n}\n"
        );
        assert_eq!(
            yaml(&blob("kiwi", "", None, b"")),
            "---\ndefaultChannel: \"\"\nname: kiwi\nschema: olm.package\n"
        );
    }
}
