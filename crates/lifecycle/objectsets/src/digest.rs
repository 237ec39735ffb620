//! Digests of phases: the proof that the objects of a revision are still those that were applied first.
//!
//! References name Secrets, and a Secret can be deleted and made again with other content. So the first
//! reconciliation stores a digest for each phase, and later ones compare.

use crate::pack::object_json;
use crate::resolve::ResolvedPhase;
use mainstay_api::ObservedPhase;
use mainstay_gocompat::json::{self, Html, Numbers};
use mainstay_gocompat::quote;
use mainstay_object::Object;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

/// How upstream holds the numbers of an object, which its JSON shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberForm {
    /// As an object that the API returned: whole numbers are exact.
    Whole,
    /// As an object from a Secret: all numbers are floats.
    Float,
}

/// Why a revision is blocked, in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangedContentError {
    /// The number of phases differs.
    #[error("number of phases has changed (expected {expected} phases, got {found})")]
    PhaseCount {
        /// Phases with a stored digest.
        expected: usize,
        /// Phases of the spec.
        found: usize,
    },
    /// The content of phases differs.
    #[error(
        "resolved content of {} phase(s) has changed: {}; a referenced object source may have been deleted and recreated with different content",
        .0.len(), mismatches(.0)
    )]
    Content(Vec<ChangedPhase>),
}

/// A phase with other content than before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedPhase {
    /// Name.
    pub name: String,
    /// The stored digest.
    pub expected: String,
    /// The digest of the objects.
    pub found: String,
}

fn mismatches(phases: &[ChangedPhase]) -> String {
    let text = |phase: &ChangedPhase| {
        format!(
            "phase {} (expected digest {}, got {})",
            quote(&phase.name),
            phase.expected,
            phase.found
        )
    };
    phases.iter().map(text).collect::<Vec<_>>().join("; ")
}

/// The digest of a phase: name and objects as they were given, before labels of the controller.
pub(crate) fn phase_digest<'a>(
    name: &str,
    objects: impl IntoIterator<Item = (&'a Object, NumberForm)>,
) -> String {
    let mut json = "{\"name\":".to_owned();
    json::text(&mut json, name, Html::Escaped);
    json.push_str(",\"objects\":[");
    for (at, (object, form)) in objects.into_iter().enumerate() {
        if at > 0 {
            json.push(',');
        }
        let numbers = match form {
            NumberForm::Whole => Numbers::Object,
            NumberForm::Float => Numbers::Float,
        };
        json.push_str(&object_json(object.fields(), numbers));
    }
    json.push_str("]}");
    let mut digest = "sha256:".to_owned();
    for byte in Sha256::digest(json.as_bytes()) {
        let _ = write!(digest, "{byte:02x}");
    }
    digest
}

/// The digests of all phases.
pub fn observed_phases(phases: &[ResolvedPhase]) -> Vec<ObservedPhase> {
    let observed = |phase: &ResolvedPhase| {
        let objects = phase.objects.iter().map(|object| (&object.object, object.numbers));
        ObservedPhase { name: phase.name.clone(), digest: phase_digest(&phase.name, objects) }
    };
    phases.iter().map(observed).collect()
}

/// Compares the stored digests with the current ones. Returns what the status has afterwards.
///
/// # Errors
/// The content differs: the revision is blocked until the old content is back.
pub fn verify_observed_phases(
    stored: &[ObservedPhase],
    current: Vec<ObservedPhase>,
) -> Result<Vec<ObservedPhase>, ChangedContentError> {
    if stored.is_empty() {
        return Ok(current);
    }
    if stored.len() != current.len() {
        return Err(ChangedContentError::PhaseCount {
            expected: stored.len(),
            found: current.len(),
        });
    }
    let changed: Vec<ChangedPhase> = current
        .into_iter()
        .filter_map(|current| {
            let before = stored.iter().find(|before| before.name == current.name)?;
            (before.digest != current.digest).then(|| ChangedPhase {
                name: current.name,
                expected: before.digest.clone(),
                found: current.digest,
            })
        })
        .collect();
    if changed.is_empty() {
        Ok(stored.to_vec())
    } else {
        Err(ChangedContentError::Content(changed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_object::Gvk;

    fn observed(phases: &[(&str, &str)]) -> Vec<ObservedPhase> {
        phases
            .iter()
            .map(|(name, digest)| ObservedPhase {
                name: (*name).to_owned(),
                digest: (*digest).to_owned(),
            })
            .collect()
    }

    #[test]
    fn digest_is_that_of_upstream() {
        let object = Object::new(&Gvk::from_api_version("v1", "ConfigMap"), "cm1");
        // The value of upstream's own test.
        assert_eq!(
            phase_digest("deploy", [(&object, NumberForm::Whole)]),
            "sha256:e159e3f2c46b65df156d02407c44936c0fd7349149a89dadf190d27c67019edc"
        );
    }

    #[test]
    fn changed_phases_are_listed_and_a_first_observation_is_stored() {
        let stored = observed(&[("one", "sha256:aa"), ("two", "sha256:bb")]);
        assert_eq!(verify_observed_phases(&[], stored.clone()), Ok(stored.clone()));
        assert_eq!(verify_observed_phases(&stored, stored.clone()), Ok(stored.clone()));
        let error = verify_observed_phases(&stored, observed(&[("one", "sha256:aa")]));
        assert_eq!(
            error.unwrap_err().to_string(),
            "number of phases has changed (expected 2 phases, got 1)"
        );
        let error = verify_observed_phases(
            &stored,
            observed(&[("one", "sha256:00"), ("two", "sha256:11")]),
        );
        assert_eq!(
            error.unwrap_err().to_string(),
            "resolved content of 2 phase(s) has changed: phase \"one\" (expected digest sha256:aa, got \
             sha256:00); phase \"two\" (expected digest sha256:bb, got sha256:11); a referenced object \
             source may have been deleted and recreated with different content"
        );
    }
}
