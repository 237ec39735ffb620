//! What upstream's decoder says to a text that is no YAML.

use mainstay_yaml::{YamlError, libyaml, sections};

/// What is wrong with a stream of documents, without the words before it.
pub(super) fn of_stream(bytes: &[u8], error: &YamlError) -> String {
    // Upstream takes lines apart by bytes and ends the last one too, which may leave half of one of
    // the two-byte characters that a mark at the beginning announces.
    let wide = [b"\xff\xfe", b"\xfe\xff"].iter().any(|mark| bytes.starts_with(*mark));
    if wide && (bytes.len() + usize::from(!bytes.ends_with(b"\n"))) % 2 == 1 {
        return "incomplete UTF-16 character".to_owned();
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return of_text(bytes, error) };
    let of_sections = sections(text)
        .map_while(Result::ok)
        .find_map(|section| libyaml::find_error(&text.as_bytes()[section.bytes]));
    of_sections.map_or_else(|| of_text(bytes, error), |fault| fault.to_string())
}

/// What is wrong with a text of which only the first document counts.
pub(super) fn of_text(bytes: &[u8], error: &YamlError) -> String {
    libyaml::find_error(bytes).map_or_else(|| error.fault.to_string(), |fault| fault.to_string())
}
