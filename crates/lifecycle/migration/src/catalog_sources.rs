//! CatalogSources of OLM classic as ClusterCatalogs of OLM v1.

use crate::installed::reference;
use crate::names::MIGRATED_FROM_CATALOG_SOURCE;
use mainstay_api::resources::CLUSTER_CATALOG;
use mainstay_object::{Object, duration};
use serde::Serialize;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const IMAGE: &[&str] = &["spec", "source", "image", "ref"];

/// What happens with a CatalogSource.
#[derive(Clone, Debug, PartialEq)]
pub enum CatalogAction {
    /// A ClusterCatalog is created.
    Create(Box<Object>),
    /// An existing ClusterCatalog has the image; it gets the annotation if it has none.
    Adopt(Box<Object>),
    /// The ClusterCatalog of another CatalogSource of this run has the image.
    Share,
    /// There is no equivalent.
    Skip,
    /// Another catalog has the name.
    Refuse,
}

/// The plan for a CatalogSource.
#[derive(Clone, Debug, PartialEq)]
pub struct CatalogPlan {
    /// What is reported.
    pub outcome: CatalogSourceOutcome,
    /// What is done.
    pub action: CatalogAction,
    /// Whether a Subscription names the CatalogSource.
    pub is_used: bool,
}

/// What is reported about a CatalogSource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CatalogSourceOutcome {
    /// The namespace of the CatalogSource.
    pub namespace: String,
    /// The name of the CatalogSource.
    pub name: String,
    /// The name of the ClusterCatalog; empty if there is none.
    pub cluster_catalog: String,
    /// `created`, `adopted`, `skipped` or `error`.
    pub status: &'static str,
    /// Why.
    pub reason: String,
    /// What helps; empty if nothing is needed.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub remedy: String,
    /// Fields that have no equivalent.
    pub notes: Vec<String>,
    /// Whether the CatalogSource is deleted.
    pub deleted: bool,
}

/// Plans the ClusterCatalogs for CatalogSources, in order of namespace and name.
///
/// CatalogSources of the same name and image share a ClusterCatalog of that name; if the images differ, each
/// gets `NAME-NAMESPACE`. `caps_priority` allows a priority outside of 32 bits, which is then capped.
pub fn plan_catalogs(
    sources: &[Object],
    catalogs: &[Object],
    subscriptions: &[Object],
    caps_priority: bool,
) -> Vec<CatalogPlan> {
    let mut sources: Vec<&Object> = sources.iter().collect();
    sources.sort_by_key(|source| (source.namespace(), source.name()));
    let mut images: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for source in &sources {
        if let Some(image) = image_of(source) {
            images.entry(source.name()).or_default().insert(image);
        }
    }
    let used: BTreeSet<String> = subscriptions
        .iter()
        .map(|subscription| {
            let field = |name| subscription.str(&["spec", name]).unwrap_or_default();
            format!("{}/{}", field("sourceNamespace"), field("source"))
        })
        .collect();
    let mut planner = Planner { catalogs, planned: BTreeMap::new(), caps_priority };
    sources
        .into_iter()
        .map(|source| {
            let is_shared = images.get(source.name()).is_some_and(|images| images.len() == 1);
            let is_used = used.contains(&reference(source));
            let (outcome, action) = planner.plan(source, is_shared);
            CatalogPlan { outcome, action, is_used }
        })
        .collect()
}

/// The image of a CatalogSource that can be a ClusterCatalog.
fn image_of(source: &Object) -> Option<&str> {
    let is_grpc = source.str(&["spec", "sourceType"]) == Some("grpc");
    source.str(&["spec", "image"]).filter(|image| is_grpc && !image.is_empty())
}

struct Planner<'a> {
    catalogs: &'a [Object],
    /// The images of ClusterCatalogs that this run creates or adopts, by name.
    planned: BTreeMap<String, String>,
    caps_priority: bool,
}

impl Planner<'_> {
    fn plan(&mut self, source: &Object, is_shared: bool) -> (CatalogSourceOutcome, CatalogAction) {
        let mut outcome = CatalogSourceOutcome {
            namespace: source.namespace().to_owned(),
            name: source.name().to_owned(),
            status: "skipped",
            ..CatalogSourceOutcome::default()
        };
        let Some(image) = image_of(source) else {
            outcome.reason = match source.str(&["spec", "sourceType"]).unwrap_or_default() {
                "grpc" => "it names an address and no image".to_owned(),
                kind => format!("sourceType {kind} has no equivalent"),
            };
            outcome.remedy =
                "build an image of its content: mainstay opm generate dockerfile".into();
            return (outcome, CatalogAction::Skip);
        };
        outcome.notes = notes(source);
        let priority = source.i64(&["spec", "priority"]).unwrap_or_default();
        let fits = i32::try_from(priority).is_ok();
        if !fits && !self.caps_priority {
            outcome.reason = format!("priority {priority} has more than 32 bits");
            outcome.remedy = "cap it with --acknowledge-priority-overflow".into();
            return (outcome, CatalogAction::Skip);
        }
        let capped = priority.clamp(i64::from(i32::MIN), i64::from(i32::MAX));
        if !fits {
            outcome.notes.push(format!("priority {priority} becomes {capped}"));
        }
        let name = if is_shared {
            source.name().to_owned()
        } else {
            format!("{}-{}", source.name(), source.namespace())
        };
        if let Some(existing) = self.existing(image, &name).cloned() {
            existing.name().clone_into(&mut outcome.cluster_catalog);
            outcome.status = "adopted";
            outcome.reason = "it has the same image".into();
            self.planned.insert(existing.name().to_owned(), image.to_owned());
            return (outcome, CatalogAction::Adopt(Box::new(existing)));
        }
        name.clone_into(&mut outcome.cluster_catalog);
        if self.planned.get(&name).is_some_and(|planned| planned == image) {
            outcome.status = "adopted";
            outcome.reason =
                "a CatalogSource of another namespace has the same name and image".into();
            return (outcome, CatalogAction::Share);
        }
        let other = self.catalogs.iter().find(|catalog| catalog.name() == name);
        let other = other.map(|catalog| catalog.str(IMAGE).unwrap_or_default());
        if let Some(other) = other.or(self.planned.get(&name).map(String::as_str)) {
            outcome.status = "error";
            outcome.reason = format!("ClusterCatalog {name} has another image: {other}");
            outcome.remedy = format!(
                "create a ClusterCatalog with another name for image {image}; this command then adopts it"
            );
            return (outcome, CatalogAction::Refuse);
        }
        self.planned.insert(name.clone(), image.to_owned());
        outcome.status = "created";
        outcome.reason = format!("from image {image}");
        let mut from = json!({"ref": image});
        match poll_minutes(source) {
            Some(_) if image.contains('@') => {
                outcome.notes.push("an image with a digest is not polled".to_owned());
            }
            Some(minutes) => from["pollIntervalMinutes"] = minutes.into(),
            None => {}
        }
        let mut catalog = Object::new(&CLUSTER_CATALOG.gvk(), &name);
        catalog.set_annotation(MIGRATED_FROM_CATALOG_SOURCE, reference(source));
        catalog.set(
            &["spec"],
            json!({
                "source": {"type": "Image", "image": from},
                "priority": capped,
                "availabilityMode": "Available",
            }),
        );
        (outcome, CatalogAction::Create(Box::new(catalog)))
    }

    /// The ClusterCatalog with an image: that of the name, or the first one.
    fn existing(&self, image: &str, name: &str) -> Option<&Object> {
        let same = self.catalogs.iter().filter(|catalog| catalog.str(IMAGE) == Some(image));
        same.min_by_key(|catalog| (catalog.name() != name, catalog.name()))
    }
}

/// The ClusterCatalog with the annotation about its CatalogSource; none if it has one of any CatalogSource.
pub fn annotated_catalog(catalog: &Object, source: &CatalogSourceOutcome) -> Option<Object> {
    if catalog.annotation(MIGRATED_FROM_CATALOG_SOURCE).is_some() {
        return None;
    }
    let mut catalog = catalog.clone();
    let from = format!("{}/{}", source.namespace, source.name);
    catalog.set_annotation(MIGRATED_FROM_CATALOG_SOURCE, from);
    Some(catalog)
}

/// The poll interval of a CatalogSource in whole minutes, at least one. Less than a minute more is dropped.
fn poll_minutes(source: &Object) -> Option<u64> {
    // OLM classic polls every 15 minutes if it cannot read the interval.
    const DEFAULT: Duration = Duration::from_mins(15);
    let interval = source.str(&["spec", "updateStrategy", "registryPoll", "interval"])?;
    let interval = duration::parse(interval).ok().flatten().unwrap_or(DEFAULT);
    Some((interval.as_secs() / 60).max(1))
}

/// The fields of a CatalogSource without an equivalent.
fn notes(source: &Object) -> Vec<String> {
    let mut notes = Vec::new();
    if !source.array(&["spec", "secrets"]).is_empty() {
        notes
            .push("spec.secrets is dropped: OLM v1 uses the pull secret of the cluster".to_owned());
    }
    if source.get(&["spec", "grpcPodConfig"]).is_some() {
        notes.push("spec.grpcPodConfig is dropped: OLM v1 runs no pod for a catalog".to_owned());
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn object(value: Value) -> Object {
        Object::from_value(value).unwrap()
    }

    fn source(namespace: &str, name: &str, more: &Value) -> Object {
        let mut spec = json!({"sourceType": "grpc"});
        spec.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
        object(json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource",
            "metadata": {"name": name, "namespace": namespace}, "spec": spec,
        }))
    }

    /// `name → catalog: status` of each CatalogSource.
    fn summary(plans: &[CatalogPlan]) -> Vec<String> {
        let line = |plan: &CatalogPlan| {
            let CatalogSourceOutcome { namespace, name, cluster_catalog, status, .. } =
                &plan.outcome;
            format!("{namespace}/{name} → {cluster_catalog}: {status}")
        };
        plans.iter().map(line).collect()
    }

    #[test]
    fn same_image_is_one_catalog_and_different_ones_get_their_namespace() {
        let sources = [
            source("b", "same", &json!({"image": "r/x:1"})),
            source("a", "same", &json!({"image": "r/x:1"})),
            source("a", "other", &json!({"image": "r/y:1"})),
            source("b", "other", &json!({"image": "r/z:1"})),
        ];
        assert_eq!(
            summary(&plan_catalogs(&sources, &[], &[], false)),
            [
                "a/other → other-a: created",
                "a/same → same: created",
                "b/other → other-b: created",
                "b/same → same: adopted",
            ]
        );
    }

    #[test]
    fn existing_catalog_with_the_image_is_adopted_and_one_with_the_name_is_in_the_way() {
        let catalog = |name: &str, image: &str| {
            object(json!({
                "apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterCatalog",
                "metadata": {"name": name},
                "spec": {"source": {"type": "Image", "image": {"ref": image}}},
            }))
        };
        let catalogs = [catalog("z", "r/x:1"), catalog("far", "r/x:1"), catalog("busy", "r/q:1")];
        let sources = [
            source("a", "mine", &json!({"image": "r/x:1"})),
            source("a", "busy", &json!({"image": "r/y:1"})),
        ];
        let plans = plan_catalogs(&sources, &catalogs, &[], false);
        assert_eq!(summary(&plans), ["a/busy → busy: error", "a/mine → far: adopted"]);
        let adopted = annotated_catalog(&catalogs[1], &plans[1].outcome).unwrap();
        assert_eq!(adopted.annotation(MIGRATED_FROM_CATALOG_SOURCE), Some("a/mine"));
        assert_eq!(annotated_catalog(&adopted, &plans[0].outcome), None);
    }

    #[test]
    fn sources_without_an_image_are_skipped() {
        for (spec, reason) in [
            (json!({"sourceType": "configmap"}), "sourceType configmap has no equivalent"),
            (json!({"sourceType": "internal"}), "sourceType internal has no equivalent"),
            (json!({"address": "a:50051"}), "it names an address and no image"),
        ] {
            let plans = plan_catalogs(&[source("a", "c", &spec)], &[], &[], false);
            assert_eq!(plans[0].action, CatalogAction::Skip);
            assert_eq!(plans[0].outcome.reason, reason);
        }
    }

    #[test]
    fn interval_is_whole_minutes_and_dropped_for_digests() {
        let minutes = |image: &str, interval: &str| {
            let spec = json!({
                "image": image, "updateStrategy": {"registryPoll": {"interval": interval}},
            });
            let mut plans = plan_catalogs(&[source("a", "c", &spec)], &[], &[], false);
            let CatalogAction::Create(catalog) = plans.remove(0).action else { panic!("created") };
            catalog.i64(&["spec", "source", "image", "pollIntervalMinutes"])
        };
        assert_eq!(minutes("r/x:1", "10m30s"), Some(10));
        assert_eq!(minutes("r/x:1", "5s"), Some(1));
        assert_eq!(minutes("r/x:1", "nonsense"), Some(15));
        assert_eq!(minutes("r/x@sha256:0", "10m"), None);
    }

    #[test]
    fn priority_of_more_than_32_bits_is_capped_on_request() {
        let spec = json!({"image": "r/x:1", "priority": 1_i64 << 40});
        let sources = [source("a", "c", &spec)];
        let refused = plan_catalogs(&sources, &[], &[], false);
        assert_eq!(refused[0].action, CatalogAction::Skip);
        let mut plans = plan_catalogs(&sources, &[], &[], true);
        let CatalogAction::Create(catalog) = plans.remove(0).action else { panic!("created") };
        assert_eq!(catalog.i64(&["spec", "priority"]), Some(i64::from(i32::MAX)));
    }

    #[test]
    fn source_of_a_subscription_is_used() {
        let subscription = object(json!({
            "apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription",
            "metadata": {"name": "s", "namespace": "n"},
            "spec": {"source": "c", "sourceNamespace": "a"},
        }));
        let sources = [
            source("a", "c", &json!({"image": "r/x:1"})),
            source("b", "c", &json!({"image": "r/x:1"})),
        ];
        let plans = plan_catalogs(&sources, &[], &[subscription], false);
        assert_eq!(plans.iter().map(|plan| plan.is_used).collect::<Vec<_>>(), [true, false]);
    }
}
