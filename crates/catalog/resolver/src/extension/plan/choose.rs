//! Choice of the bundle of a package that meets all dependencies on it.

use super::super::api_range::common_range;
use super::super::dependency::Provider;
use super::super::package_content::PackageContent;
use super::super::pick::{
    ExtensionChoice, ExtensionFailureKind, UnexplainedFailure, choose_bundle,
};
use super::super::request::{CATALOG_NAME_LABEL, ExtensionRequest, InputCatalog};
use super::super::{bundle_match, pick};
use super::{Planner, RequiredDependency};
use mainstay_cause::Cause;
use mainstay_gocompat::quote;
use mainstay_version::{Range, VersionRelease};
use serde_json::json;
use std::collections::BTreeSet;

/// A chosen bundle, and how the controller comes to choose it.
#[derive(Clone, Debug)]
pub(super) struct Pick {
    pub choice: ExtensionChoice,
    /// The bundle as a provider.
    pub provider: Provider,
    /// The priority of its catalog.
    pub priority: i32,
    /// The range to request; empty for all versions.
    pub version: String,
    /// Whether exactly this version must be requested.
    pub is_pinned: bool,
    /// The catalog to select.
    pub catalog: Option<String>,
}

impl Planner<'_> {
    /// Chooses the bundle of a package with all dependencies on it. `near` is the catalog of its dependent.
    pub(super) fn pick(&self, package: &str, near: Option<&str>) -> Result<Pick, Cause> {
        let required = self.required.get(package).map(Vec::as_slice).unwrap_or_default();
        match self.best(package, required, near) {
            Ok(Some(pick)) => Ok(pick),
            Ok(None) => Err(self.conflict(package)),
            Err(failure) => Err(self.unresolved(package, *failure)),
        }
    }

    /// The bundle of a package that the controller would choose among those that meet all dependencies; none if
    /// there is none.
    ///
    /// # Errors
    /// The controller would not choose any bundle of the package.
    pub(super) fn best(
        &self,
        package: &str,
        required: &[RequiredDependency],
        near: Option<&str>,
    ) -> Result<Option<Pick>, Box<UnexplainedFailure>> {
        let views: Vec<InputCatalog<'_>> =
            self.input.catalogs.iter().map(|catalog| catalog.view(package)).collect();
        let request = self.request(package);
        let is_root = package == self.input.request.package;
        let attempt = |version: &str, is_pinned: bool| {
            let mut request = request.clone();
            if !is_root {
                version.clone_into(&mut request.version);
            }
            choose(&request, &views, near).map(|(choice, catalog)| {
                let provider = provider_of(&views, package, &choice)?;
                let priority = views
                    .iter()
                    .find(|view| view.name == choice.catalog)
                    .map_or(0, |view| view.priority);
                let is_met = required.iter().all(|one| one.dependency.is_met_by(&provider));
                let version = request.version;
                is_met.then_some(Pick { choice, provider, priority, version, is_pinned, catalog })
            })
        };
        let first = match range_of(required) {
            Some(range) => attempt(&range, false),
            None => Ok(None),
        };
        match first {
            Ok(Some(pick)) => return Ok(Some(pick)),
            Ok(None) => {}
            // A range that no version is in says nothing about others.
            Err(failure) if failure.kind == ExtensionFailureKind::NotFound && !is_root => {}
            Err(failure) => return Err(failure),
        }
        if is_root {
            return Ok(None);
        }
        for version in self.versions(package) {
            if let Ok(Some(pick)) = attempt(&bundle_match::pin(&version), true) {
                return Ok(Some(pick));
            }
        }
        Ok(None)
    }

    /// The versions of a package in all catalogs, the newest first.
    pub(super) fn versions(&self, package: &str) -> Vec<VersionRelease> {
        let contents =
            self.input.catalogs.iter().filter_map(|catalog| catalog.packages.get(package));
        let versions: BTreeSet<VersionRelease> = contents
            .filter_map(|content| content.as_ref().ok())
            .flat_map(PackageContent::bundles)
            .filter_map(|bundle| VersionRelease::parse_legacy(&bundle.version).ok())
            .collect();
        versions.into_iter().rev().collect()
    }

    /// The cause that the controller chooses no bundle of a package.
    fn unresolved(&self, package: &str, failure: UnexplainedFailure) -> Cause {
        let views: Vec<InputCatalog<'_>> =
            self.input.catalogs.iter().map(|catalog| catalog.view(package)).collect();
        let mut request = self.request(package);
        let required = self.required.get(package).map(Vec::as_slice).unwrap_or_default();
        if package != self.input.request.package {
            request.version = range_of(required).unwrap_or_default();
        }
        let message = failure.message.clone();
        let explained = super::super::explain::failure(&request, None, &views, failure).cause;
        let required = required.iter().map(RequiredDependency::cause);
        Cause::new(format!("no bundle of package {} can be chosen: {message}", quote(package)))
            .because(explained)
            .because_all(required)
    }
}

/// The range that all dependencies on a package have in common; none if the API cannot express it.
fn range_of(required: &[RequiredDependency]) -> Option<String> {
    let ranges: Vec<&Range> =
        required.iter().filter_map(|one| Some(one.dependency.package()?.1)).collect();
    common_range(&ranges)
}

/// Chooses as the controller does. If several catalogs of the same priority have the package, that of the
/// dependent provides it: then its name is returned, too.
fn choose(
    request: &ExtensionRequest,
    views: &[InputCatalog<'_>],
    near: Option<&str>,
) -> Result<(ExtensionChoice, Option<String>), Box<UnexplainedFailure>> {
    let failure = match choose_bundle(request, None, views) {
        Ok(choice) => return Ok((choice, None)),
        Err(failure) => failure,
    };
    let is_near = |near: &&str| {
        failure.competing_catalogs.iter().any(|&at| failure.considered[at].catalog == **near)
    };
    match near.filter(is_near) {
        Some(near) if failure.kind == ExtensionFailureKind::Ambiguous => {
            let selector = json!({"matchLabels": {CATALOG_NAME_LABEL: near}});
            let request = ExtensionRequest { selector: Some(selector), ..request.clone() };
            let choice = choose_bundle(&request, None, views).map_err(Box::new)?;
            Ok((choice, Some(near.to_owned())))
        }
        _ => Err(Box::new(failure)),
    }
}

/// The chosen bundle as a provider.
fn provider_of(
    views: &[InputCatalog<'_>],
    package: &str,
    choice: &ExtensionChoice,
) -> Option<Provider> {
    let view = views.iter().find(|view| view.name == choice.catalog)?;
    let content = pick::package_content(view, package)?;
    let bundle = content.bundles().find(|bundle| bundle.name == choice.bundle)?;
    Some(Provider::bundle(bundle))
}
