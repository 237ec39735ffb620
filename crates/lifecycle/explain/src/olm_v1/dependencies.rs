//! Dependencies that the cluster does not satisfy, with what would satisfy them.

use super::DependencyCheck;
use crate::ClusterObjects;
use mainstay_cause::{Cause, shell_word};
use mainstay_object::Object;
use mainstay_resolver::extension::{
    DEPENDENCIES_ANNOTATION, Dependency, DependencyPolicy, UNMET_DEPENDENCIES, UnmetDependencies,
};

/// Whether a message is about unsatisfied dependencies.
pub(super) fn is_about_dependencies(message: &str) -> bool {
    message.starts_with(UNMET_DEPENDENCIES)
}

/// The cause of unsatisfied dependencies.
pub(super) fn cause(cluster: &ClusterObjects, extension: &Object, message: &str) -> Cause {
    let name = extension.name();
    let check = cluster.resolution.as_ref().map(|resolution| &resolution.dependencies);
    let unmet = match check {
        Some(DependencyCheck::Unmet(unmet)) => unmet,
        Some(DependencyCheck::Satisfied) => {
            return Cause::new(message).remedy("wait: the cluster satisfies them now");
        }
        Some(DependencyCheck::NotChecked) | None => {
            return Cause::new(message)
                .remedy("install what the message names; the controller then continues at once");
        }
    };
    let causes = unmet
        .unmet
        .iter()
        .map(|(dependency, others)| dependency_cause(cluster, extension, dependency, others));
    Cause::new(headline(unmet)).because_all(causes).remedy(format!(
        "or accept the bundle without them: kubectl annotate clusterextension {name} --overwrite {DEPENDENCIES_ANNOTATION}=Ignore"
    ))
}

fn headline(unmet: &UnmetDependencies) -> String {
    match unmet.unmet.len() {
        1 => format!("a dependency of bundle {} is not satisfied", unmet.bundle),
        many => format!("{many} dependencies of bundle {} are not satisfied", unmet.bundle),
    }
}

fn dependency_cause(
    cluster: &ClusterObjects,
    extension: &Object,
    dependency: &Dependency,
    others: &[(String, String)],
) -> Cause {
    let cause = Cause::new(format!("it requires {dependency}"));
    let range = dependency.version_range();
    let flag = range.map_or_else(String::new, |range| format!(" --version {}", shell_word(&range)));
    if let [(name, version), ..] = others {
        return cause
            .because(Cause::new(format!("ClusterExtension {name} has version {version}")))
            .remedy(format!("update it: mainstay extension update {name}{flag}"));
    }
    if let Some((package, _)) = dependency.package() {
        let same = cluster.of_kind("ClusterExtension").find(|other| {
            other.str(&["spec", "source", "catalog", "packageName"]) == Some(package)
                && other.name() != extension.name()
                && !other.is_terminating()
        });
        if let Some(same) = same {
            let name = same.name();
            return cause
                .because(Cause::new(format!("ClusterExtension {name} has nothing installed")))
                .remedy(format!("see why: mainstay why clusterextension/{name}"));
        }
        let namespace = extension.str(&["spec", "namespace"]).unwrap_or_default();
        let package = shell_word(package);
        return cause.remedy(format!(
            "install it: mainstay extension install {package} --package {package} --namespace {namespace}{flag}"
        ));
    }
    if dependency.api().is_some() {
        return cause
            .remedy("install an operator that provides it, or its CustomResourceDefinition");
    }
    cause
}

/// A note about an annotation whose value means nothing.
pub(super) fn annotation_note(extension: &Object) -> Option<String> {
    let value = extension.annotation(DEPENDENCIES_ANNOTATION)?;
    (DependencyPolicy::of(Some(value)) == DependencyPolicy::Refuse).then(|| {
        format!(
            "the annotation {DEPENDENCIES_ANNOTATION} has the unknown value {value:?} and no effect; write Require or Ignore"
        )
    })
}
