//! Format checks: what `opm` requires of the folders and the metadata of a bundle, with places and
//! remedies.

use super::findings::severity;
use super::validate::BundleContext;
use crate::validation::Finding;
use mainstay_bundle::BundleReader;
use mainstay_bundle::validate::{
    FindingLocation, LibraryVersion, LoadResult, LoadedBundle, validate_sdk_objects,
};
use mainstay_catalog::Severity;
use std::fs;
use std::path::Path;

/// The rule of these findings.
const RULE: &str = "format";
/// The annotation with the media type of the manifests.
const MEDIA_TYPE: &str = "operators.operatorframework.io.bundle.mediatype.v1";
/// The folder of the manifests.
const MANIFESTS: &str = "manifests";
/// The folder of annotations, dependencies and properties.
const METADATA: &str = "metadata";
/// The message of `opm` if no file has annotations.
const NO_ANNOTATIONS: &str = "Could not find annotations file";
/// The largest size of a metadata file that is searched, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// Findings of `opm` about a bundle folder that the validators do not report.
pub(super) fn bundle_findings(
    path: &Path,
    about: &BundleContext<'_>,
    reading: &BundleReader<'_>,
    loaded: &LoadResult,
) -> Vec<Finding> {
    let mut found = folder_findings(path, reading, about, loaded);
    if let Some(subject) = &loaded.subject {
        found.extend(object_findings(path, reading, subject, about));
    }
    found
}

/// Findings about the folders and the metadata of a bundle. Missing metadata is a warning, and no
/// finding for a folder of manifests alone.
fn folder_findings(
    path: &Path,
    reading: &BundleReader<'_>,
    about: &BundleContext<'_>,
    loaded: &LoadResult,
) -> Vec<Finding> {
    if !path.join(METADATA).exists() && path.join(MANIFESTS).is_dir() {
        let message =
            "the folder metadata is missing: no tool accepts the bundle without it".to_owned();
        let manifests = about.path_of(MANIFESTS);
        let remedy =
            format!("opm alpha bundle generate -d {manifests} -p PACKAGE -c CHANNEL writes it");
        return vec![about.finding(RULE, Severity::Warning, ("", None), message, remedy)];
    }
    if !path.join(METADATA).is_dir() {
        return Vec::new();
    }
    let files = metadata(path);
    let unread = |folder: &str| {
        loaded.problems.iter().any(|problem| {
            problem.file.strip_prefix(folder).is_some_and(|below| below.starts_with('/'))
        })
    };
    let (manifests_unread, metadata_unread) = (unread(MANIFESTS), unread(METADATA));
    // Unreadable files are reported when the bundle is read; their consequences are not.
    let faults = reading.check_format(&about.path_of(""));
    let relevant_faults = faults
        .iter()
        .filter(|fault| {
            !fault.starts_with("The directory ") && !fault.starts_with("Unable to read")
        })
        .filter(|fault| {
            let is_known = loaded.subject.is_some() && !manifests_unread;
            is_known || !fault.contains(MEDIA_TYPE)
        })
        .filter(|fault| !metadata_unread || *fault != NO_ANNOTATIONS);
    relevant_faults
        .map(|fault| {
            let (place, remedy) = if fault.starts_with("Unable to locate ") {
                (None, "a bundle has the folders manifests and metadata")
            } else if fault == NO_ANNOTATIONS {
                (Some((METADATA.to_owned(), None)), "write metadata/annotations.yaml")
            } else if fault.contains(" annotation \"") {
                let key = fault.split('"').nth(1).unwrap_or_default();
                (find(&files, &[key, "annotations:"]), "write it as opm alpha bundle generate does")
            } else {
                (find(&files, &["dependencies:"]), "correct the dependency")
            };
            let (file, line) = place.unwrap_or_default();
            about.finding(RULE, Severity::Error, (&file, line), lowercase_first(fault), remedy)
        })
        .collect()
}

/// Findings about objects that are neither ClusterServiceVersions nor CustomResourceDefinitions: kinds
/// that bundles must not have, and invalid metadata.
fn object_findings(
    path: &Path,
    reading: &BundleReader<'_>,
    subject: &LoadedBundle,
    about: &BundleContext<'_>,
) -> Vec<Finding> {
    let folder = if path.join(MANIFESTS).is_dir() { MANIFESTS } else { "" };
    let media = reading.media_type(folder, folder);
    let found = validate_sdk_objects(subject, media.unwrap_or_default(), LibraryVersion::default());
    let findings: Vec<&mainstay_bundle::validate::ValidationFinding> = found.iter().collect();
    let places = subject.locate_all(&findings);
    let to_finding = |(finding, place): (
        &&mainstay_bundle::validate::ValidationFinding,
        Option<FindingLocation>,
    )| {
        let (message, remedy) = match finding.detail.strip_prefix("error validating object: ") {
            Some(why) => {
                // The object itself is in the file.
                let why = why.split(". &{").next().unwrap_or(why);
                (why.to_owned(), "correct the metadata")
            }
            None => (
                "a bundle may not contain objects of this kind".to_owned(),
                "remove it, or let the operator create it",
            ),
        };
        let place = place.as_ref().map_or(("", None), |place| (place.file.as_str(), place.line));
        about.finding(RULE, severity(finding.level), place, message, remedy)
    };
    findings.iter().zip(places).map(to_finding).collect()
}

/// The metadata files by name, with their texts.
fn metadata(path: &Path) -> Vec<(String, String)> {
    let entries = fs::read_dir(path.join(METADATA)).into_iter().flatten().flatten();
    let mut files: Vec<(String, String)> = entries
        .filter(|entry| {
            entry.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.len() <= MAX_BYTES)
        })
        .filter_map(|entry| {
            let name = format!("{METADATA}/{}", entry.file_name().to_string_lossy());
            Some((name, fs::read_to_string(entry.path()).ok()?))
        })
        .collect();
    files.sort();
    files
}

/// The first place of the first word that any file has.
fn find(files: &[(String, String)], words: &[&str]) -> Option<(String, Option<usize>)> {
    words.iter().filter(|word| !word.is_empty()).find_map(|word| {
        files.iter().find_map(|(file, text)| {
            let line = text.lines().position(|line| line.contains(word))?;
            Some((file.clone(), Some(line + 1)))
        })
    })
}

/// A sentence with a lower-case first letter, unless that begins an abbreviation.
fn lowercase_first(text: &str) -> String {
    let mut letters = text.chars();
    match (letters.next(), letters.next()) {
        (Some(first), Some(second)) if second.is_lowercase() => {
            format!("{}{}", first.to_lowercase(), &text[first.len_utf8()..])
        }
        _ => text.to_owned(),
    }
}
