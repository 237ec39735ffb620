//! Rules and objects as texts for people.

use crate::rule::{RbacRule, ScopedRules};
use serde_json::Value;
use std::fmt::Write as _;

/// Objects as one YAML stream.
pub fn to_yaml(objects: &[Value]) -> String {
    let documents: Vec<String> = objects.iter().map(mainstay_yaml::to_string).collect();
    documents.join("---\n")
}

/// Rules as a list by scope:
///
/// ```text
/// in the whole cluster:
///   create customresourcedefinitions.apiextensions.k8s.io
///   delete, get deployments.apps: teapot-controller
/// ```
pub fn describe_rules(scopes: &[ScopedRules]) -> String {
    let mut out = String::new();
    for ScopedRules { namespace, rules } in scopes {
        let scope = match &**namespace {
            "" => "in the whole cluster".to_owned(),
            namespace => format!("in namespace {namespace}"),
        };
        // Writing to a String does not fail.
        let _ = writeln!(out, "{scope}:");
        for rule in rules {
            let _ = writeln!(out, "  {}", describe_rule(rule));
        }
    }
    out
}

/// One rule in a line, with resources as kubectl writes them: `deployments.apps`.
fn describe_rule(rule: &RbacRule) -> String {
    let resources = rule.api_groups.iter().flat_map(|group| {
        rule.resources.iter().map(move |resource| match &**group {
            "" => resource.clone(),
            group => format!("{resource}.{group}"),
        })
    });
    let targets: Vec<String> = resources.chain(rule.non_resource_urls.iter().cloned()).collect();
    let names = match &rule.resource_names[..] {
        [] => String::new(),
        names => format!(": {}", names.join(", ")),
    };
    format!("{} {}{names}", rule.verbs.join(", "), targets.join(", "))
}
