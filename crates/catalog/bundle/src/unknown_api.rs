//! Objects of kinds and versions that no cluster serves.
//!
//! Upstream's validators look at an object's kind and not at its `apiVersion`: a Service of `v2` and a
//! Deployment of `v1` are sound to them, and the InstallPlan fails on a cluster. Whatever calls itself
//! a ClusterServiceVersion is one to OLM, whatever its group and version; `kubectl apply` and the API
//! server refuse it.
//!
//! Kinds of groups that Kubernetes does not have are custom ones: nothing is said of them, unless their
//! group is nearly that of a built-in kind of the same name.

use crate::{
    bundle::Bundle,
    error::BundleProblem,
    manifest::Manifest,
    validate::{FindingLevel, LoadedBundle, is_removed},
};
use mainstay_formats::near;
use mainstay_gocompat::quote;
use mainstay_object::Gvk;
use mainstay_schema::builtin::{self, BuiltinKind};
use mainstay_schema::gojson::Step;

/// The `apiVersion` of a ClusterServiceVersion.
const OF_CLUSTER_SERVICE_VERSION: &str = "operators.coreos.com/v1alpha1";

/// How many letters of a group may be wrong for another one to be meant.
const MOST_LETTERS: usize = 2;

/// An object of a kind or version that no cluster serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownApi {
    /// An error where a cluster refuses the object for certain; a warning where an older or newer one
    /// may take it, or OLM does.
    pub level: FindingLevel,
    /// Where it stands, and what was probably meant.
    pub problem: BundleProblem,
}

impl LoadedBundle {
    /// Objects of kinds and versions that no cluster serves, in the order of files.
    pub fn unknown_apis(&self) -> Vec<UnknownApi> {
        self.manifests().iter().filter_map(of_manifest).collect()
    }
}

impl Bundle {
    /// Objects of kinds and versions that no cluster serves, in the order of files.
    pub fn unknown_apis(&self) -> Vec<UnknownApi> {
        self.manifests().iter().filter_map(of_manifest).collect()
    }
}

fn of_manifest(manifest: &Manifest) -> Option<UnknownApi> {
    let (said, kind) = (manifest.api_version(), manifest.kind());
    let (level, message, remedy) = match kind {
        "ClusterServiceVersion" if said == OF_CLUSTER_SERVICE_VERSION => return None,
        "ClusterServiceVersion" => {
            let message = format!(
                "the apiVersion {} is not that of a ClusterServiceVersion: OLM reads it all the \
                 same, the API server refuses it",
                quote(said)
            );
            (FindingLevel::Warning, message, OF_CLUSTER_SERVICE_VERSION.to_owned())
        }
        // Whoever reads the bundle refuses its other versions.
        "CustomResourceDefinition" => return None,
        _ => of_builtin(manifest)?,
    };
    let line = manifest.line_of(&[Step::Field("apiVersion".to_owned())]);
    let mut problem = manifest.problem(message, format!("write apiVersion: {remedy}"));
    problem.line = line.or(problem.line);
    Some(UnknownApi { level, problem })
}

/// What is wrong with the `apiVersion` of an object whose kind is a built-in one, and which one it has.
fn of_builtin(manifest: &Manifest) -> Option<(FindingLevel, String, String)> {
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
        let far = |row: &&BuiltinKind| near::distance(group, row.group, MOST_LETTERS);
        rows().filter(|row| far(row).is_some()).min_by_key(far)
    };
    let other_group = || is_builtin.then(|| rows().next()).flatten();
    let meant = same_group.or_else(near_group).or_else(other_group)?;
    let message = format!(
        "there is no kind {kind} in {}: the API server refuses the object",
        quote(manifest.api_version())
    );
    // A version before the first stable one may be there in other versions of Kubernetes.
    let may_be_served = same_group.is_some() && version.contains(['a', 'b']);
    let level = if may_be_served { FindingLevel::Warning } else { FindingLevel::Error };
    let gvk = meant.gvk();
    let api_version =
        if gvk.group.is_empty() { gvk.version } else { format!("{}/{}", gvk.group, gvk.version) };
    Some((level, message, api_version))
}
