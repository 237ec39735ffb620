//! Messages of upstream's decoder for texts that are not YAML.

use mainstay_yaml::{YamlError, libyaml, sections};

/// The message for a stream of documents, without its prefix.
pub(super) fn stream_error(bytes: &[u8], error: &YamlError) -> String {
    // Upstream splits lines by bytes and adds a line end to the last one. After a UTF-16 byte order
    // mark that may leave half of a character.
    let wide = [b"\xff\xfe", b"\xfe\xff"].iter().any(|mark| bytes.starts_with(*mark));
    if wide && (bytes.len() + usize::from(!bytes.ends_with(b"\n"))) % 2 == 1 {
        return "incomplete UTF-16 character".to_owned();
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return document_error(bytes, error) };
    let of_sections = sections(text)
        .map_while(Result::ok)
        .find_map(|section| libyaml::find_error(&text.as_bytes()[section.bytes]));
    of_sections.map_or_else(|| document_error(bytes, error), |fault| fault.to_string())
}

/// The message for a text of which only the first document counts.
pub(super) fn document_error(bytes: &[u8], error: &YamlError) -> String {
    libyaml::find_error(bytes).map_or_else(|| error.fault.to_string(), |fault| fault.to_string())
}
