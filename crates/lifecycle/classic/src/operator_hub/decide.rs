//! OperatorHub decisions: which default CatalogSources are enabled, and the action for each.

use mainstay_api::{CatalogSource, CatalogSourceSpec, HubSourceStatus, OperatorHubSpec, names};
use std::collections::BTreeMap;

/// What the controller does with a default CatalogSource.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CatalogAction {
    /// Nothing.
    Leave,
    /// Create it.
    Make(Box<CatalogSource>),
    /// Update the existing one to this.
    Restore(Box<CatalogSource>),
    /// Delete the existing one.
    Remove,
}

/// Whether each default CatalogSource, and each that the OperatorHub names, is disabled.
pub(crate) fn disabled(
    defaults: &[CatalogSource],
    hub: &OperatorHubSpec,
) -> BTreeMap<String, bool> {
    let all = hub.disable_all_default_sources;
    let defaults = defaults.iter().map(|source| (source.metadata.name.clone(), all));
    let named = hub.sources.iter().map(|source| (source.name.clone(), source.disabled));
    defaults.chain(named).collect()
}

/// The action for a default CatalogSource, given the existing one.
pub(crate) fn action(
    default: &CatalogSource,
    disabled: bool,
    present: Option<&CatalogSource>,
) -> CatalogAction {
    let mut wanted = default.clone();
    wanted.metadata.annotations.insert(names::MANAGED_BY.into(), names::MARKETPLACE.into());
    let Some(present) = present else {
        return if disabled { CatalogAction::Leave } else { CatalogAction::Make(Box::new(wanted)) };
    };
    let annotations = &present.metadata.annotations;
    if present.metadata.deletion_timestamp.is_some() {
        // Its deletion triggers another decision.
        return CatalogAction::Leave;
    }
    if disabled {
        let ours = annotations
            .get(names::MANAGED_BY)
            .is_some_and(|annotation| annotation == names::MARKETPLACE);
        return if ours { CatalogAction::Remove } else { CatalogAction::Leave };
    }
    let spec = spec(default, present);
    let wanted_annotations = wanted.metadata.annotations.iter();
    if spec == present.spec
        && wanted_annotations.clone().all(|(key, value)| annotations.get(key) == Some(value))
    {
        return CatalogAction::Leave;
    }
    let mut restored = present.clone();
    restored.spec = spec;
    restored
        .metadata
        .annotations
        .extend(wanted_annotations.map(|(key, value)| (key.clone(), value.clone())));
    CatalogAction::Restore(Box::new(restored))
}

/// The desired spec. With an image template, the image of the existing CatalogSource stays.
fn spec(default: &CatalogSource, present: &CatalogSource) -> CatalogSourceSpec {
    let mut spec = default.spec.clone();
    if default.metadata.annotations.contains_key(names::CATALOG_IMAGE_TEMPLATE)
        && !present.spec.image.is_empty()
    {
        spec.image.clone_from(&present.spec.image);
    }
    spec
}

/// The source statuses of the OperatorHub. `failed` holds error messages by name.
pub(crate) fn statuses(
    defaults: &[CatalogSource],
    disabled: &BTreeMap<String, bool>,
    failed: &BTreeMap<String, String>,
) -> Vec<HubSourceStatus> {
    let is_default = |name: &str| defaults.iter().any(|source| source.metadata.name == name);
    let status = |(name, disabled): (&String, &bool)| {
        let message = if is_default(name) {
            failed.get(name).cloned().unwrap_or_default()
        } else {
            "Not present in the default definitions".to_owned()
        };
        let status = if message.is_empty() { "Success" } else { "Error" };
        HubSourceStatus {
            name: name.clone(),
            disabled: *disabled,
            status: status.to_owned(),
            message,
        }
    };
    disabled.iter().map(status).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_api::{HubSource, Time};

    fn source(name: &str, image: &str) -> CatalogSource {
        let mut source = CatalogSource::default();
        source.metadata.name = name.to_owned();
        source.spec.image = image.to_owned();
        source
    }

    fn hub(all: bool, sources: &[(&str, bool)]) -> OperatorHubSpec {
        let named = |(name, disabled): &(&str, bool)| HubSource {
            name: (*name).to_owned(),
            disabled: *disabled,
        };
        OperatorHubSpec {
            disable_all_default_sources: all,
            sources: sources.iter().map(named).collect(),
        }
    }

    #[test]
    fn a_single_source_setting_wins_over_disable_all_default_sources() {
        let defaults = [source("a", "x"), source("b", "x")];
        for (hub, expected) in [
            (hub(false, &[]), &[("a", false), ("b", false)][..]),
            (hub(true, &[]), &[("a", true), ("b", true)]),
            (hub(true, &[("b", false)]), &[("a", true), ("b", false)]),
            (hub(false, &[("a", true)]), &[("a", true), ("b", false)]),
            (hub(false, &[("z", true)]), &[("a", false), ("b", false), ("z", true)]),
        ] {
            let found = disabled(&defaults, &hub);
            let found: Vec<(&str, bool)> =
                found.iter().map(|(name, disabled)| (&**name, *disabled)).collect();
            // shows HUB-04 HUB-05
            assert_eq!(found, expected, "{hub:?}");
        }
    }

    #[test]
    fn an_enabled_default_matches_its_manifest_and_user_created_sources_stay() {
        let default = source("a", "x");
        let CatalogAction::Make(ours) = action(&default, false, None) else { panic!("it is made") };
        assert_eq!(ours.metadata.annotations[names::MANAGED_BY], names::MARKETPLACE);
        assert_eq!(action(&default, true, None), CatalogAction::Leave);
        assert_eq!(action(&default, false, Some(&ours)), CatalogAction::Leave);
        assert_eq!(action(&default, true, Some(&ours)), CatalogAction::Remove);
        let mut theirs = source("a", "y");
        theirs.metadata.annotations.insert("note".into(), "mine".into());
        theirs.spec.priority = 7;
        assert_eq!(action(&default, true, Some(&theirs)), CatalogAction::Leave);
        let CatalogAction::Restore(restored) = action(&default, false, Some(&theirs)) else {
            panic!("it becomes the default")
        };
        assert_eq!(restored.spec, default.spec);
        assert_eq!(restored.metadata.annotations["note"], "mine");
        assert_eq!(action(&default, false, Some(&restored)), CatalogAction::Leave);
        let mut terminating = theirs;
        terminating.metadata.deletion_timestamp = Some(Time::new(jiff::Timestamp::UNIX_EPOCH));
        assert_eq!(action(&default, false, Some(&terminating)), CatalogAction::Leave);
    }

    #[test]
    fn an_image_from_a_template_is_not_restored() {
        let mut default = source("a", "x");
        let template = names::CATALOG_IMAGE_TEMPLATE.to_owned();
        default.metadata.annotations.insert(template, "x:{kube_minor_version}".into());
        let CatalogAction::Make(mut created) = action(&default, false, None) else {
            panic!("it is made")
        };
        created.spec.image = "x:35".into();
        assert_eq!(action(&default, false, Some(&created)), CatalogAction::Leave);
        created.spec.publisher = "me".into();
        let CatalogAction::Restore(restored) = action(&default, false, Some(&created)) else {
            panic!("it is restored")
        };
        assert_eq!((&*restored.spec.image, &*restored.spec.publisher), ("x:35", ""));
    }

    #[test]
    fn the_hub_status_reports_success_errors_and_unknown_sources() {
        let defaults = [source("a", "x"), source("b", "x")];
        let disabled = disabled(&defaults, &hub(true, &[("b", false), ("z", false)]));
        let failed = BTreeMap::from([("b".to_owned(), "it is forbidden".to_owned())]);
        let statuses_found = statuses(&defaults, &disabled, &failed);
        let statuses_found: Vec<_> = statuses_found
            .iter()
            .map(|source| (&*source.name, source.disabled, &*source.status, &*source.message))
            .collect();
        assert_eq!(
            statuses_found,
            [
                ("a", true, "Success", ""),
                ("b", false, "Error", "it is forbidden"),
                ("z", false, "Error", "Not present in the default definitions"),
            ]
        );
    }
}
