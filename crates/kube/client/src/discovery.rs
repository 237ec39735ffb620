//! Discovery: the resources of a server.

use crate::{Cluster, Error, Result};
use mainstay_object::{Resource, Scope};
use serde_json::Value;

/// The media type of aggregated discovery: all resources in two requests.
const AGGREGATED: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";

/// A resource as discovery describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiResource {
    /// The kind and its URL.
    pub resource: Resource,
    /// The supported verbs: `get`, `list`, `watch`, `create`, …
    pub verbs: Vec<String>,
    /// Whether this is the version of its group that the server prefers for the resource.
    pub preferred: bool,
}

impl ApiResource {
    /// Whether the resource supports a verb.
    pub fn can(&self, verb: &str) -> bool {
        self.verbs.iter().any(|supported| supported == verb)
    }
}

impl Cluster {
    /// All resources of the server (without subresources), in each served version.
    ///
    /// Groups whose aggregated API server does not respond are left out; `complete` says whether
    /// any was.
    pub async fn resources(&self) -> Result<Discovery> {
        let mut found = Discovery { resources: Vec::new(), complete: true };
        let core = self.get_raw_as("/api", AGGREGATED).await?;
        if core.get("kind").and_then(Value::as_str) == Some("APIGroupDiscoveryList") {
            found.aggregated(&core);
            found.aggregated(&self.get_raw_as("/apis", AGGREGATED).await?);
            return Ok(found);
        }
        // A server before 1.26: one request for each version of each group.
        for version in array(&core, "versions").filter_map(Value::as_str) {
            let document = self.get_raw(&format!("/api/{version}")).await?;
            found.resources.extend(group_version("", version, &document));
        }
        let groups = self.get_raw("/apis").await?;
        for group in array(&groups, "groups") {
            let name = text(group, "name");
            for (at, version) in array(group, "versions").enumerate() {
                let version = text(version, "version");
                match self.get_raw(&format!("/apis/{name}/{version}")).await {
                    Ok(document) => {
                        found.resources.extend(
                            group_version(name, version, &document).into_iter().map(|mut api| {
                                api.preferred = at == 0;
                                api
                            }),
                        );
                    }
                    Err(Error::Status(_)) => found.complete = false,
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(found)
    }
}

/// The result of discovery.
#[derive(Clone, Debug)]
pub struct Discovery {
    /// The resources.
    pub resources: Vec<ApiResource>,
    /// Whether every group responded.
    pub complete: bool,
}

impl Discovery {
    fn aggregated(&mut self, document: &Value) {
        for group in array(document, "items") {
            let group_name = group.get("metadata").map_or("", |metadata| text(metadata, "name"));
            let mut plurals: Vec<String> = Vec::new();
            for version in array(group, "versions") {
                if text(version, "freshness") == "Stale" {
                    self.complete = false;
                }
                for resource in array(version, "resources") {
                    let kind = resource.get("responseKind").map_or("", |kind| text(kind, "kind"));
                    let plural = text(resource, "resource");
                    let scope = if text(resource, "scope") == "Namespaced" {
                        Scope::Namespaced
                    } else {
                        Scope::Cluster
                    };
                    let preferred = !plurals.iter().any(|known| known == plural);
                    if preferred {
                        plurals.push(plural.to_owned());
                    }
                    self.resources.push(ApiResource {
                        resource: Resource::new(
                            group_name,
                            text(version, "version"),
                            kind,
                            plural,
                            scope,
                        ),
                        verbs: strings(resource, "verbs"),
                        preferred,
                    });
                }
            }
        }
    }
}

/// The resources of an `APIResourceList`.
pub(crate) fn group_version(group: &str, version: &str, document: &Value) -> Vec<ApiResource> {
    array(document, "resources")
        .filter(|entry| !text(entry, "name").contains('/'))
        .map(|entry| {
            let scope = if entry.get("namespaced").and_then(Value::as_bool) == Some(true) {
                Scope::Namespaced
            } else {
                Scope::Cluster
            };
            ApiResource {
                resource: Resource::new(
                    group,
                    version,
                    text(entry, "kind"),
                    text(entry, "name"),
                    scope,
                ),
                verbs: strings(entry, "verbs"),
                preferred: true,
            }
        })
        .collect()
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn array<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn strings(value: &Value, key: &str) -> Vec<String> {
    array(value, key).filter_map(Value::as_str).map(ToOwned::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_first_version_that_has_a_resource_is_the_preferred_one() {
        let entry = |plural: &str| {
            json!({
                "resource": plural, "scope": "Namespaced", "verbs": ["get", "list"],
                "responseKind": {"kind": "K"},
            })
        };
        let mut found = Discovery { resources: Vec::new(), complete: true };
        found.aggregated(&json!({"items": [{"metadata": {"name": "g"}, "versions": [
            {"version": "v1", "resources": [entry("a")]},
            {"version": "v1beta1", "resources": [entry("a"), entry("b")]},
        ]}]}));
        let rows: Vec<(String, bool)> = found
            .resources
            .iter()
            .map(|api| (format!("{}/{}", api.resource.version, api.resource.plural), api.preferred))
            .collect();
        assert_eq!(
            rows,
            [
                ("v1/a".to_owned(), true),
                ("v1beta1/a".to_owned(), false),
                ("v1beta1/b".to_owned(), true)
            ]
        );
        assert!(found.resources[0].can("list") && !found.resources[0].can("watch"));
    }

    #[test]
    fn subresources_are_left_out() {
        let found = group_version(
            "",
            "v1",
            &json!({"resources": [
                {"name": "pods", "kind": "Pod", "namespaced": true, "verbs": ["get"]},
                {"name": "pods/log", "kind": "Pod", "namespaced": true, "verbs": ["get"]},
            ]}),
        );
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].resource.collection_path(Some("a")), "/api/v1/namespaces/a/pods");
    }
}
