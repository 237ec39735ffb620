//! Placeholders of recorded texts.

use mainstay_image::digest::Digest;
use regex::{Captures, Regex};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::LazyLock;

static IMAGE_DIGEST: LazyLock<Regex> =
    LazyLock::new(|| super::pattern(r"\{([A-Za-z0-9][A-Za-z0-9._/-]*:[A-Za-z0-9._-]+(?:#\d+)?)\}"));

/// The values of a case's placeholders.
#[derive(Clone, Debug, Default)]
pub(super) struct Placeholders {
    /// The digest of each image, by `REPOSITORY:TAG`, and `REPOSITORY:TAG#2` for the second content
    /// of the tag.
    digests: BTreeMap<String, String>,
}

impl Placeholders {
    /// Adds the digest of an image that is pushed as `reference`, which begins with a host.
    pub(super) fn add_image(&mut self, reference: &str, digest: &Digest) {
        let name = reference.split_once('/').map_or(reference, |(_, name)| name);
        let hex = digest.hex().to_owned();
        let name_of = |count: usize| match count {
            1 => name.to_owned(),
            count => format!("{name}#{count}"),
        };
        let mut count = 1;
        while let Some(known) = self.digests.get(&name_of(count)) {
            if *known == hex {
                return;
            }
            count += 1;
        }
        self.digests.insert(name_of(count), hex);
    }

    /// Replaces the placeholders of digests and of random bytes.
    pub(super) fn fill(&self, text: &str) -> String {
        let text = mainstay_testdata::fill_random(text);
        let digest = |found: &Captures<'_>| match self.digests.get(&found[1]) {
            Some(digest) => digest.clone(),
            None => found[0].to_owned(),
        };
        IMAGE_DIGEST.replace_all(&text, digest).into_owned()
    }

    /// Replaces the placeholders in all texts of a value.
    pub(super) fn fill_value(&self, value: &mut Value) {
        super::normalize::map_texts(value, &mut |text| self.fill(text));
    }

    /// Whether a digest is that of an image.
    pub(super) fn is_image(&self, hex: &str) -> bool {
        self.digests.values().any(|known| known == hex)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_numbered_by_the_contents_of_a_tag() {
        let mut placeholders = Placeholders::default();
        let (one, two) = (Digest::of(b"one"), Digest::of(b"two"));
        for digest in [&one, &two, &one] {
            placeholders.add_image("registry.example/c1/cat:v1", digest);
        }
        let filled =
            placeholders.fill("x@sha256:{c1/cat:v1} y@sha256:{c1/cat:v1#2} {c1/cat:v2} {time}");
        assert_eq!(filled, format!("x@{one} y@{two} {{c1/cat:v2}} {{time}}"));
    }
}
