//! ClusterExtensions: why one is not installed as its spec says, or does not work.

use super::failure::{FailedInstallation, is_resolution, resolved_bundle};
use super::{ReportedCondition, cluster_catalog, dependencies, object_set, owned_objects, removal};
use crate::{ClusterObjects, Finding, workload};
use mainstay_cause::Cause;
use mainstay_object::Object;
use mainstay_resolver::extension::{CatalogEvaluation, ExtensionFailureKind};
use std::collections::BTreeSet;

const CHECK_CONTROLLER: &str = "check that a controller of OLM v1 runs, such as `mainstay run`";

/// Explains a ClusterExtension.
pub(crate) fn finding(cluster: &ClusterObjects, extension: &Object) -> Finding {
    if extension.is_terminating() {
        let causes = removal::causes(cluster, extension);
        return Finding { state: "is being deleted".to_owned(), causes, notes: Vec::new() };
    }
    let spec_causes = spec_causes(cluster, extension);
    let mut workload_causes = workload_causes(cluster, extension);
    workload_causes.extend(removal::deleted_object_causes(cluster, extension.name()));
    let bundle = |field| extension.str(&["status", "install", "bundle", field]).unwrap_or_default();
    let installed = match (bundle("name"), bundle("version")) {
        ("", _) => None,
        (name, version) => Some(format!("{name} (version {version}) is installed")),
    };
    let state = match (installed, spec_causes.is_empty(), workload_causes.is_empty()) {
        (Some(installed), true, true) => format!("is as its spec says: {installed}"),
        (Some(installed), true, false) => format!("does not work: {installed}"),
        (Some(installed), false, _) => format!("is not as its spec says: {installed}"),
        (None, ..) => "is not installed".to_owned(),
    };
    let mut causes = spec_causes;
    causes.extend(workload_causes);
    if causes.is_empty() && bundle("name").is_empty() {
        causes.push(
            Cause::new("nothing is installed, and no condition says why").remedy(CHECK_CONTROLLER),
        );
    }
    let notes = notes(cluster, extension, causes.is_empty());
    Finding { state, causes, notes }
}

/// Why the spec is not carried out.
fn spec_causes(cluster: &ClusterObjects, extension: &Object) -> Vec<Cause> {
    let mut causes: Vec<Cause> = namespace_cause(cluster, extension).into_iter().collect();
    let progressing = ReportedCondition::of(extension, "Progressing");
    let Some(progressing) = progressing.filter(|progressing| progressing.is_current) else {
        causes.push(
            Cause::new("no controller has reported on the present spec").remedy(CHECK_CONTROLLER),
        );
        return causes;
    };
    let installed = ReportedCondition::of(extension, "Installed");
    let is_unknown = installed.is_some_and(|installed| {
        installed.status == "Unknown" && installed.message != progressing.message
    });
    if let Some(installed) = installed.filter(|_| is_unknown) {
        causes.push(
            Cause::new("it is unknown what is installed").because(Cause::new(installed.message)),
        );
    }
    match (progressing.status, progressing.reason) {
        ("True", "Succeeded") => {}
        ("True", "RollingOut") => {
            let sets = set_causes(cluster, extension);
            let cause = Cause::new(text_or(progressing.message, "its objects are being applied"));
            causes.push(cause.because_all(sets));
            return causes;
        }
        _ if dependencies::is_about_dependencies(progressing.message) => {
            causes.push(dependencies::cause(cluster, extension, progressing.message));
        }
        _ if is_resolution(progressing.message) => {
            causes.push(resolution_cause(cluster, progressing.message));
        }
        (_, reason) => {
            let image = image_of(cluster, extension, progressing.message);
            let rival = rival(cluster, extension);
            let failed = FailedInstallation { extension: Some(extension), image, rival };
            let sets = set_causes(cluster, extension);
            // With ClusterObjectSets, the condition repeats what the set reports.
            if sets.is_empty() || resolved_bundle(progressing.message).is_some() {
                causes.push(failed.cause(text_or(progressing.message, reason)));
            }
            causes.extend(sets);
            return causes;
        }
    }
    causes.extend(set_causes(cluster, extension));
    causes
}

fn text_or<'t>(text: &'t str, otherwise: &'t str) -> &'t str {
    if text.is_empty() { otherwise } else { text }
}

/// The cause that the namespace of the objects is being deleted: nothing can be created there.
fn namespace_cause(cluster: &ClusterObjects, extension: &Object) -> Option<Cause> {
    let namespace = extension.str(&["spec", "namespace"])?;
    let object = cluster.find("Namespace", "", namespace)?;
    object.is_terminating().then(|| {
        Cause::new(format!("namespace {namespace} is being deleted"))
            .remedy(format!("wait until it is gone, then: kubectl create namespace {namespace}"))
    })
}

/// Why no bundle is chosen.
fn resolution_cause(cluster: &ClusterObjects, message: &str) -> Cause {
    let cause = Cause::new(format!("no bundle can be chosen: {message}"));
    let Some(resolution) =
        cluster.resolution.as_ref().filter(|resolution| resolution.is_conclusive())
    else {
        return cause;
    };
    match &resolution.result {
        Ok(choice) => cause.remedy(format!(
            "wait: with the present catalogs, {} of ClusterCatalog {} can be chosen; the controller tries again within two minutes",
            choice.bundle, choice.catalog
        )),
        Err(failure) if failure.kind == ExtensionFailureKind::Unreadable => {
            let unreadable = failure.considered.iter().filter(|result| {
                matches!(result.state, CatalogEvaluation::Unreadable(_))
            });
            let catalogs: Vec<Cause> = unreadable
                .filter_map(|result| cluster.find("ClusterCatalog", "", &result.catalog))
                .filter_map(cluster_catalog::dependent_cause)
                .collect();
            cause.because(failure.cause.clone()).because_all(catalogs)
        }
        Err(failure) => {
            let cause = cause.because(failure.cause.clone());
            let has = |is_it: fn(&CatalogEvaluation) -> bool| {
                failure.considered.iter().any(|result| is_it(&result.state))
            };
            if has(|state| matches!(state, CatalogEvaluation::Evaluated(_)))
                || !failure.repairs.is_empty()
            {
                return cause;
            }
            let cause = if has(|state| matches!(state, CatalogEvaluation::Absent)) {
                let package = &resolution.request.package;
                cause.remedy(format!(
                    "check the name {package}; this finds packages: mainstay catalog search WORD"
                ))
            } else {
                cause
            };
            cause.remedy("create a ClusterCatalog that has the package")
        }
    }
}

/// The name of another ClusterExtension with the same package.
pub(super) fn rival<'w>(cluster: &'w ClusterObjects, extension: &Object) -> Option<&'w str> {
    let package = |extension: &Object| {
        extension.str(&["spec", "source", "catalog", "packageName"]).map(str::to_owned)
    };
    let mut others = cluster
        .of_kind("ClusterExtension")
        .filter(|other| other.name() != extension.name() && package(other) == package(extension));
    others.next().map(Object::name)
}

/// The image of the bundle that a failure is about.
fn image_of<'w>(
    cluster: &'w ClusterObjects,
    extension: &'w Object,
    message: &str,
) -> Option<&'w str> {
    let (bundle, ..) = resolved_bundle(message)?;
    let choice = cluster.resolution.as_ref()?.result.as_ref().ok();
    if let Some(choice) = choice.filter(|choice| *choice.bundle == *bundle) {
        return Some(&choice.image);
    }
    let is_installed = extension.str(&["status", "install", "bundle", "name"]) == Some(bundle);
    let installed = ReportedCondition::of(extension, "Installed").filter(|_| is_installed)?;
    installed.message.strip_prefix("Installed bundle ")?.strip_suffix(" successfully")
}

/// The causes of the ClusterObjectSets of an extension that are not rolled out.
fn set_causes(cluster: &ClusterObjects, extension: &Object) -> Vec<Cause> {
    let sets = owned_objects(cluster, extension.name())
        .filter(|object| object.kind() == "ClusterObjectSet" && !object_set::is_archived(object));
    let cause_of = |set: &Object| {
        let causes = object_set::causes(cluster, set);
        (!causes.is_empty()).then(|| {
            Cause::new(format!("ClusterObjectSet {} is not complete", set.name()))
                .because_all(causes)
        })
    };
    let mut sets: Vec<&Object> = sets.collect();
    sets.sort_by_key(|set| (set.i64(&["spec", "revision"]), set.name()));
    sets.into_iter().filter_map(cause_of).collect()
}

/// Why Deployments of an extension do not work. Those of ClusterObjectSets have their causes there.
fn workload_causes(cluster: &ClusterObjects, extension: &Object) -> Vec<Cause> {
    let has_sets = owned_objects(cluster, extension.name())
        .any(|object| object.kind() == "ClusterObjectSet" && !object_set::is_archived(object));
    let is_reported = |deployment: &Object| {
        has_sets
            && ReportedCondition::of(extension, "Available").is_some_and(|available| {
                let place = format!("{}/{}", deployment.namespace(), deployment.name());
                available.message.contains(&place)
            })
    };
    let remedy = object_set::scheduling_remedy(Some(extension));
    let mut deployments: Vec<&Object> = owned_objects(cluster, extension.name())
        .filter(|object| object.kind() == "Deployment" && !is_reported(object))
        .collect();
    deployments.sort_by_key(|deployment| deployment.key());
    let causes = deployments.into_iter().filter_map(|deployment| {
        workload::deployment_cause(cluster, deployment, remedy.as_deref())
    });
    causes.collect()
}

/// What does not block the extension: deprecations, catalogs that could not be read, a better bundle.
fn notes(cluster: &ClusterObjects, extension: &Object, is_healthy: bool) -> Vec<String> {
    let mut notes = Vec::new();
    let mut seen = BTreeSet::new();
    for kind in ["PackageDeprecated", "ChannelDeprecated", "BundleDeprecated"] {
        let condition = ReportedCondition::of(extension, kind);
        let message = condition.filter(|condition| condition.status == "True");
        if let Some(message) = message.map(|condition| condition.message)
            && seen.insert(message)
        {
            notes.push(format!("{kind}: {message}"));
        }
    }
    notes.extend(dependencies::annotation_note(extension));
    let Some(resolution) = &cluster.resolution else { return notes };
    for (name, why) in &resolution.unread {
        let reasons: Vec<&str> = why.children().iter().map(Cause::what).collect();
        let reasons = if reasons.is_empty() { vec![why.what()] } else { reasons };
        let remedy = why.remedies().first().map(|remedy| format!("; {remedy}"));
        notes.push(format!(
            "ClusterCatalog {name} could not be read from here: {}{}",
            reasons.join("; "),
            remedy.unwrap_or_default()
        ));
    }
    let installed = extension.str(&["status", "install", "bundle", "name"]);
    if is_healthy
        && let Ok(choice) = &resolution.result
        && installed.is_some_and(|installed| *installed != *choice.bundle)
        && resolution.unread.is_empty()
    {
        notes.push(format!(
            "the controller has not yet changed to {}, which ClusterCatalog {} offers",
            choice.bundle, choice.catalog
        ));
    }
    for result in resolution.considered() {
        let is_down = matches!(result.state, CatalogEvaluation::Unreadable(_))
            && !resolution.is_unread(&result.catalog);
        if let CatalogEvaluation::Unreadable(why) = &result.state
            && is_down
            && is_healthy
        {
            notes.push(format!("{why}: mainstay why clustercatalog/{}", result.catalog));
        }
    }
    notes
}
