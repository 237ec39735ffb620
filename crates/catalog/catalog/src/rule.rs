//! Rules of catalogs: a stable id for each, so that people can search for it, and tools can count,
//! display and silence it.

use std::fmt;

/// The severity of a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// The catalog cannot be used, or content is lost.
    Error,
    /// The catalog can be used, but something looks unintended.
    Warning,
}

impl Severity {
    /// `error` or `warning`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Declares the rules as one table: description, name, id and severity.
macro_rules! rules {
    ($(#[doc = $about:literal] $rule:ident = $id:literal $severity:ident,)*) => {
        /// A rule for catalogs.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum CatalogRule {
            $(#[doc = $about] $rule,)*
        }

        impl CatalogRule {
            /// All rules.
            pub const ALL: &'static [Self] = &[$(Self::$rule,)*];

            /// The id in reports: words joined by dashes. An id never changes its meaning.
            pub const fn id(self) -> &'static str {
                match self { $(Self::$rule => $id,)* }
            }

            /// The severity of breaking the rule.
            pub const fn severity(self) -> Severity {
                match self { $(Self::$rule => Severity::$severity,)* }
            }

            /// The description, in one sentence.
            pub const fn about(self) -> &'static str {
                match self { $(Self::$rule => $about.trim_ascii(),)* }
            }
        }
    };
}

rules! {
    // Files.
    /// The path leads to a folder with a catalog of a size that can be held.
    NoCatalog = "no-catalog" Error,
    /// Every file and folder can be opened, and none leads out of the catalog.
    UnreadableFile = "unreadable-file" Error,
    /// Files and values stay below the limits on their size.
    AboveLimit = "above-limit" Error,
    /// The patterns in `.indexignore` can be read.
    IgnoreFile = "ignore-file" Error,
    /// Files are UTF-8 text in YAML or JSON.
    Syntax = "syntax" Error,
    // Documents.
    /// Documents hold something.
    EmptyDocument = "empty-document" Error,
    /// Documents are mappings with a field `schema`.
    NotABlob = "not-a-blob" Error,
    /// No two keys of a document differ only in case.
    CaseOfKeys = "case-of-keys" Error,
    /// Values have the type that their field takes.
    WrongType = "wrong-type" Error,
    /// Packages, channels and bundles have names, and what belongs to a package names it.
    MissingName = "missing-name" Error,
    /// What names a package names one that the catalog has.
    UnknownPackage = "unknown-package" Error,
    // Packages.
    /// A package is declared once.
    DuplicatePackage = "duplicate-package" Error,
    /// Names of packages are DNS labels.
    PackageName = "package-name" Error,
    /// A package has a default channel, which is one of its channels.
    DefaultChannel = "default-channel" Error,
    /// A package has a channel.
    NoChannels = "no-channels" Error,
    // Channels.
    /// A channel is declared once in its package.
    DuplicateChannel = "duplicate-channel" Error,
    /// A channel has entries.
    EmptyChannel = "empty-channel" Error,
    /// A bundle has one entry in a channel.
    DuplicateEntry = "duplicate-entry" Error,
    /// Every item of `skips` names a bundle.
    EmptySkip = "empty-skip" Error,
    /// Ranges of versions can be read.
    VersionRange = "version-range" Error,
    /// A channel has exactly one head: an entry that no other replaces or skips.
    ChannelHead = "channel-head" Error,
    /// Following `replaces` from the head never comes back.
    ReplacesCycle = "replaces-cycle" Error,
    /// The chain of `replaces` from the head reaches every entry that is not skipped.
    StrandedEntry = "stranded-entry" Error,
    /// Every entry of a channel has its bundle.
    MissingBundle = "missing-bundle" Error,
    // Bundles.
    /// A bundle is declared once in its package.
    DuplicateBundle = "duplicate-bundle" Error,
    /// No two bundles of a package have the same version.
    DuplicateVersion = "duplicate-version" Error,
    /// Every bundle is in a channel.
    UnlistedBundle = "unlisted-bundle" Error,
    /// Properties have a type, and a value of the shape that the type asks for.
    BadProperty = "bad-property" Error,
    /// A bundle has one `olm.package` property, which names its package.
    PackageProperty = "package-property" Error,
    /// Manifests in a bundle can be decoded.
    BadManifest = "bad-manifest" Error,
    /// A bundle names its image, or brings its manifests.
    NoImage = "no-image" Error,
    /// References to images can be read.
    ImageReference = "image-reference" Error,
    /// Versions are semantic ones, and releases are of their form.
    BadVersion = "bad-version" Error,
    /// A bundle with a release is named after package, version and release.
    ReleaseName = "release-name" Error,
    // Deprecations.
    /// A package has one list of deprecations, and an entry of it is there once.
    DuplicateDeprecation = "duplicate-deprecation" Error,
    /// What is deprecated is there.
    UnknownDeprecated = "unknown-deprecated" Error,
    /// A deprecation says what it is about, and has a message.
    BadDeprecation = "bad-deprecation" Error,
    // Serving.
    /// A catalog can be served: by the names of schemas, and metadata of a bundle that is there once.
    NotServed = "not-served" Error,
    // Folders of bundles.
    /// A bundle folder can be read: manifests, metadata, and one ClusterServiceVersion.
    BadBundle = "bad-bundle" Error,
    // What other tools lose without a word.
    /// No document stands where other tools stop reading.
    LostDocument = "lost-document" Error,
    /// Texts are made of characters.
    LostCharacter = "lost-character" Error,
    /// A mapping has each key once.
    RepeatedKey = "repeated-key" Error,
    /// Documents have no fields that their schema does not have: they are dropped without a word.
    UnknownField = "unknown-field" Error,
    /// Ranges are written so that nothing of them is passed over.
    RangeMisread = "range-misread" Error,
    /// Nothing in a bundle folder is passed over.
    PassedOver = "passed-over" Error,
    /// Manifests of a bundle folder are of kinds and versions that a cluster serves.
    UnknownApi = "unknown-api" Error,
    // What is allowed, and rarely meant.
    /// Values of properties have no fields that their type does not have.
    UnknownValueField = "unknown-value-field" Warning,
    /// Manifests of a bundle folder have no fields that their types do not have.
    UnknownManifestField = "unknown-manifest-field" Warning,
    /// Manifests of a bundle folder are of kinds and versions that every cluster serves.
    DoubtfulApi = "doubtful-api" Warning,
    /// Schemas that begin with `olm.` are those that there are.
    UnknownSchema = "unknown-schema" Warning,
    /// Types of properties are not nearly those that there are.
    PropertyType = "property-type" Warning,
    /// A bundle has each property once.
    RepeatedProperty = "repeated-property" Warning,
    /// Ranges hold a version.
    EmptyRange = "empty-range" Warning,
    /// What is replaced or skipped and not there is not nearly the name of something that is.
    EdgeTypo = "edge-typo" Warning,
    /// Updates lead from every entry of a channel to its head.
    CutOffEntry = "cut-off-entry" Warning,
}

#[cfg(test)]
mod tests {
    use super::CatalogRule;
    use std::collections::BTreeSet;

    #[test]
    fn rules_have_unique_ids_and_a_sentence() {
        let mut ids = BTreeSet::new();
        for rule in CatalogRule::ALL {
            let id = rule.id();
            assert!(ids.insert(id), "{id} is a duplicate");
            let good = |c: char| c.is_ascii_lowercase() || c == '-';
            assert!(id.chars().all(good), "{id}");
            let about = rule.about();
            assert!(about.ends_with('.') && about.len() < 100, "{id}: {about}");
        }
    }
}
