//! CustomResourceDefinitions of OLM v1, for [`crate::schema::manifests`].

use super::{ClusterCatalog, ClusterExtension, ClusterObjectSet, CrdChannel};
use crate::schema::{definition, remove, single_version};
use serde_json::{Value, json};

/// The definitions of both channels: those of a channel are sorted by plural name.
pub(crate) fn definitions() -> Vec<Value> {
    let mut definitions = Vec::new();
    for channel in [CrdChannel::Standard, CrdChannel::Experimental] {
        let mut kinds = vec![cluster_catalog(), cluster_extension(channel)];
        if channel == CrdChannel::Experimental {
            kinds.push(cluster_object_set());
        }
        for mut definition in kinds {
            definition["metadata"]["annotations"] =
                json!({crate::names::olm_v1::CRD_CHANNEL_ANNOTATION: channel.as_str()});
            definitions.push(definition);
        }
    }
    definitions
}

fn cluster_catalog() -> Value {
    definition(
        ClusterCatalog::default(),
        &[],
        &json!(["metadata", "spec"]),
        &[single_version(
            "v1",
            &[
                ("LastUnpacked", "date", ".status.lastUnpacked", ""),
                ("Serving", "string", r#".status.conditions[?(@.type=="Serving")].status"#, ""),
                ("Age", "date", ".metadata.creationTimestamp", ""),
            ],
        )],
    )
}

fn cluster_extension(channel: CrdChannel) -> Value {
    let mut version = single_version(
        "v1",
        &[
            ("Installed Bundle", "string", ".status.install.bundle.name", ""),
            ("Version", "string", ".status.install.bundle.version", ""),
            ("Installed", "string", ".status.conditions[?(@.type=='Installed')].status", ""),
            ("Progressing", "string", ".status.conditions[?(@.type=='Progressing')].status", ""),
            ("Age", "date", ".metadata.creationTimestamp", ""),
        ],
    );
    if channel == CrdChannel::Standard {
        version.adapt = |schema| {
            remove(schema, &["spec", "config"]);
            remove(schema, &["spec", "progressDeadlineMinutes"]);
            remove(schema, &["status", "activeRevisions"]);
            remove(schema, &["status", "install", "bundle", "release"]);
        };
    }
    definition(ClusterExtension::default(), &[], &Value::Null, &[version])
}

fn cluster_object_set() -> Value {
    definition(
        ClusterObjectSet::default(),
        &[],
        &Value::Null,
        &[single_version(
            "v1",
            &[
                ("Available", "string", ".status.conditions[?(@.type=='Available')].status", ""),
                (
                    "Progressing",
                    "string",
                    ".status.conditions[?(@.type=='Progressing')].status",
                    "",
                ),
                ("Age", "date", ".metadata.creationTimestamp", ""),
            ],
        )],
    )
}
