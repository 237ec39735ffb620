//! Objects of kinds and versions that no cluster serves.
//!
//! Upstream's validators check an object's kind, but not its `apiVersion`. They accept a Service of
//! `v2` and a Deployment of `v1`, and the InstallPlan then fails on a cluster. OLM takes each
//! object of kind ClusterServiceVersion as one, in any group and version; the API server refuses
//! it.
//!
//! A kind of a group that Kubernetes does not have is a custom one and no finding. The exception is
//! a group that is nearly the group of a built-in kind of the same name.

use crate::{
    bundle::Bundle,
    error::BundleProblem,
    manifest::Manifest,
    validate::{FindingLevel, LoadedBundle, is_removed},
};
use mainstay_formats::edit_distance;
use mainstay_gocompat::quote;
use mainstay_object::Gvk;
use mainstay_schema::builtin::{self, BuiltinKind};
use mainstay_schema::gojson::ValuePathStep;

/// The `apiVersion` of a ClusterServiceVersion.
const CSV_API_VERSION: &str = "operators.coreos.com/v1alpha1";

/// The largest edit distance between a misspelled group and the group that was meant.
const MAX_DISTANCE: usize = 2;

/// An object of a kind or version that no cluster serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownApi {
    /// An error where each cluster refuses the object. A warning where OLM, or a cluster of another
    /// version, may accept it.
    pub level: FindingLevel,
    /// The location of the object, and the apiVersion that was probably meant.
    pub problem: BundleProblem,
}

impl LoadedBundle {
    /// Objects of kinds and versions that no cluster serves, in the order of files.
    pub fn unknown_apis(&self) -> Vec<UnknownApi> {
        self.manifests().iter().filter_map(check_manifest).collect()
    }
}

impl Bundle {
    /// Objects of kinds and versions that no cluster serves, in the order of files.
    pub fn unknown_apis(&self) -> Vec<UnknownApi> {
        self.manifests().iter().filter_map(check_manifest).collect()
    }
}

fn check_manifest(manifest: &Manifest) -> Option<UnknownApi> {
    let (api_version, kind) = (manifest.api_version(), manifest.kind());
    let (level, message, remedy) = match kind {
        "ClusterServiceVersion" if api_version == CSV_API_VERSION => return None,
        "ClusterServiceVersion" => {
            let message = format!(
                "the apiVersion {} is not that of a ClusterServiceVersion: OLM reads it all the \
                 same, the API server refuses it",
                quote(api_version)
            );
            (FindingLevel::Warning, message, CSV_API_VERSION.to_owned())
        }
        // Readers of bundles refuse the other versions.
        "CustomResourceDefinition" => return None,
        _ => check_builtin(manifest)?,
    };
    let line = manifest.line_of(&[ValuePathStep::Field("apiVersion".to_owned())]);
    let mut problem = manifest.problem(message, format!("write apiVersion: {remedy}"));
    problem.line = line.or(problem.line);
    Some(UnknownApi { level, problem })
}

/// Level, message and correct `apiVersion` for an object of a built-in kind with another
/// `apiVersion`.
fn check_builtin(manifest: &Manifest) -> Option<(FindingLevel, String, String)> {
    let ((group, version), kind) = (manifest.group_version(), manifest.kind());
    if builtin::definition_of(&Gvk::new(group, version, kind)).is_some()
        || is_removed(manifest.api_version(), kind)
    {
        return None;
    }
    let rows = || builtin::kinds().iter().filter(|row| row.kind == kind);
    let is_builtin = builtin::kinds().iter().any(|row| row.group == group);
    let same_group = rows().find(|row| row.group == group);
    let near_group = || {
        let distance = |row: &&BuiltinKind| edit_distance::distance(group, row.group, MAX_DISTANCE);
        rows().filter(|row| distance(row).is_some()).min_by_key(distance)
    };
    let other_group = || is_builtin.then(|| rows().next()).flatten();
    let meant = same_group.or_else(near_group).or_else(other_group)?;
    let message = format!(
        "there is no kind {kind} in {}: the API server refuses the object",
        quote(manifest.api_version())
    );
    // Other versions of Kubernetes may serve an alpha or beta version.
    let may_be_served = same_group.is_some() && version.contains(['a', 'b']);
    let level = if may_be_served { FindingLevel::Warning } else { FindingLevel::Error };
    let gvk = meant.gvk();
    let api_version =
        if gvk.group.is_empty() { gvk.version } else { format!("{}/{}", gvk.group, gvk.version) };
    Some((level, message, api_version))
}
