//! Installation plans: an extension with all extensions that it needs.
//!
//! ```text
//! request ─► bundle ─► dependencies ─┬─► met by the cluster
//!              ▲                     └─► package: that one, or the one that provides it ─┐
//!              └─────── all dependencies on the package ◄──────────────────────────────┘
//! ```
//!
//! The plan is a function of its input. The version of each package is the one that the controller would
//! choose within all ranges that dependents require, so that the plan says what will be installed. A
//! dependency that is found late changes an earlier choice: then planning starts again with the dependencies
//! found so far, but for those of the bundle that is replaced.

mod choose;
mod order;
#[cfg(test)]
mod tests;

use super::dependency::{Dependency, DependencyPolicy, Provider, ProviderSource};
use super::package_content::PackageContent;
use super::pick::{ExtensionChoice, ExtensionFailureKind};
use super::request::{ExtensionRequest, InputCatalog, InputCatalogContent};
use choose::Pick;
use mainstay_cause::{Cause, shell_word};
use mainstay_gocompat::quote;
use std::cell::OnceCell;
use std::collections::{BTreeMap, VecDeque};

/// How often planning starts again at most. Each start has another dependency.
const MAX_ROUNDS: usize = 200;

/// A ClusterCatalog with all its packages.
#[derive(Clone, Debug)]
pub struct PlanCatalog {
    /// The catalog. With the content `Package`, its packages are those of [`Self::packages`].
    pub catalog: InputCatalog<'static>,
    /// Its packages by name, each with the reason why it cannot be read, if so.
    pub packages: BTreeMap<String, Result<PackageContent, String>>,
}

impl PlanCatalog {
    /// The catalog as the resolution of a package sees it.
    fn view(&self, package: &str) -> InputCatalog<'_> {
        let content = match (&self.catalog.content, self.packages.get(package)) {
            (InputCatalogContent::Package(_), None) => InputCatalogContent::Package(None),
            (InputCatalogContent::Package(_), Some(Ok(content))) => {
                InputCatalogContent::Package(Some(content))
            }
            (InputCatalogContent::Package(_), Some(Err(error))) => InputCatalogContent::Failed(
                format!("error loading package {}: {error}", quote(package)),
            ),
            (other, _) => other.clone(),
        };
        InputCatalog { content, ..self.catalog.clone() }
    }
}

/// A ClusterExtension of the cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExistingExtension {
    /// Its name.
    pub name: String,
    /// Its package.
    pub package: String,
    /// The version of its installed bundle; none if nothing is installed yet.
    pub version: Option<String>,
}

/// What an installation plan is made from.
#[derive(Clone, Copy, Debug)]
pub struct PlanInput<'i> {
    /// The request of the extension to install.
    pub request: &'i ExtensionRequest,
    /// The catalogs of the cluster.
    pub catalogs: &'i [PlanCatalog],
    /// The ClusterExtensions of the cluster.
    pub extensions: &'i [ExistingExtension],
    /// What the cluster provides: extensions with an installed bundle, and CustomResourceDefinitions.
    pub providers: &'i [Provider],
    /// The packages that the user prefers where several provide the same.
    pub preferred: &'i [String],
}

/// The extensions to create, and what is there already.
#[derive(Clone, Debug, PartialEq)]
pub struct ExtensionPlan {
    /// The extensions to create, dependencies first. The last one is the requested one.
    pub steps: Vec<PlanStep>,
    /// The dependencies that the cluster meets.
    pub present: Vec<PresentDependency>,
}

/// An extension to create.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanStep {
    /// Its package.
    pub package: String,
    /// Its bundle.
    pub choice: ExtensionChoice,
    /// Its `spec.source.catalog.version`; empty for all versions.
    pub version: String,
    /// The catalog to select, if several of the same priority have the package.
    pub catalog: Option<String>,
    /// Why it is needed: the bundles that depend on it. Empty only for the requested extension.
    /// One that is not in the plan would be needed by the versions that it excludes.
    pub needed_by: Vec<RequiredDependency>,
    /// Whether it depends on a later step: its dependencies are satisfied only when that is installed.
    pub needs_later: bool,
}

/// A dependency, and the bundle that has it.
#[derive(Clone, Debug, PartialEq)]
pub struct RequiredDependency {
    /// The bundle.
    pub bundle: String,
    /// The dependency.
    pub dependency: Dependency,
}

impl RequiredDependency {
    fn cause(&self) -> Cause {
        Cause::new(format!("bundle {} requires {}", self.bundle, self.dependency))
    }
}

/// A dependency that the cluster meets.
#[derive(Clone, Debug, PartialEq)]
pub struct PresentDependency {
    /// The bundle that depends on it, and the dependency.
    pub required: RequiredDependency,
    /// What meets it.
    pub source: ProviderSource,
    /// Whether it is a ClusterExtension of the package that has nothing installed yet.
    pub is_pending: bool,
}

/// Plans the installation of an extension with all that it needs.
///
/// # Errors
/// Why no set of extensions satisfies all dependencies, or which choice the user has to make.
pub fn plan_installation(input: &PlanInput<'_>) -> Result<ExtensionPlan, Box<Cause>> {
    let mut required: BTreeMap<String, Vec<RequiredDependency>> = BTreeMap::new();
    let providers = OnceCell::new();
    let mut first: Option<Result<ExtensionPlan, Box<Cause>>> = None;
    for _ in 0..MAX_ROUNDS {
        let mut planner = Planner::new(input, &providers, &required);
        let end = match planner.run() {
            Ok(plan) => Ok(plan),
            Err(Stop::Failed(cause)) => Err(cause),
            Err(Stop::Again(found)) => {
                let (package, found, replaced) = *found;
                // A bundle that goes requires nothing any more. If it comes again, so do its dependencies.
                for known in required.values_mut() {
                    known.retain(|one| one.bundle != replaced);
                }
                required.entry(package).or_default().push(found);
                continue;
            }
        };
        // Bundles that only a replaced bundle required may be gone, too. If nothing works without their
        // dependencies, those keep their effect.
        if let Some(first) = first {
            return end.or_else(|cause| first.map_err(|_| cause));
        }
        let before = required.clone();
        for known in required.values_mut() {
            known.retain(|one| planner.chooses(&one.bundle));
        }
        if required == before {
            return end;
        }
        first = Some(end);
    }
    if let Some(first) = first {
        return first;
    }
    let cause = Cause::new(format!(
        "the dependencies of package {} are too many to plan",
        quote(&input.request.package)
    ));
    Err(Box::new(cause.remedy("install some of them first, with `mainstay extension install`")))
}

/// Why a round of planning ends early.
enum Stop {
    Failed(Box<Cause>),
    /// Another bundle depends on a package that is chosen already, in a way that replaces its bundle.
    Again(Box<(String, RequiredDependency, String)>),
}

impl From<Cause> for Stop {
    fn from(cause: Cause) -> Self {
        Self::Failed(Box::new(cause))
    }
}

/// A round of planning.
struct Planner<'p> {
    input: &'p PlanInput<'p>,
    /// The bundles of all catalogs as providers, by package; made when they are needed.
    providers: &'p OnceCell<BTreeMap<&'p String, Vec<Provider>>>,
    required: BTreeMap<String, Vec<RequiredDependency>>,
    picks: BTreeMap<String, Pick>,
    /// By package, the packages that it depends on, in the order of its dependencies.
    edges: BTreeMap<String, Vec<String>>,
    present: Vec<PresentDependency>,
}

impl<'p> Planner<'p> {
    fn new(
        input: &'p PlanInput<'p>,
        providers: &'p OnceCell<BTreeMap<&'p String, Vec<Provider>>>,
        required: &BTreeMap<String, Vec<RequiredDependency>>,
    ) -> Self {
        Self {
            input,
            providers,
            required: required.clone(),
            picks: BTreeMap::new(),
            edges: BTreeMap::new(),
            present: Vec::new(),
        }
    }

    fn run(&mut self) -> Result<ExtensionPlan, Stop> {
        let root = &self.input.request.package;
        let pick = self.pick(root, None)?;
        self.picks.insert(root.clone(), pick);
        let mut queue = VecDeque::from([root.clone()]);
        // All of them are reported at once.
        let mut failures: Vec<Cause> = Vec::new();
        while let Some(package) = queue.pop_front() {
            let Some(pick) = self.picks.get(&package).cloned() else { continue };
            for dependency in pick.choice.dependencies.clone() {
                let required =
                    RequiredDependency { bundle: pick.choice.bundle.to_string(), dependency };
                if let Some(provider) = required.dependency.provider(self.input.providers) {
                    let (source, is_pending) = (provider.source.clone(), false);
                    self.present.push(PresentDependency { required, source, is_pending });
                    continue;
                }
                let added = match self.add(required, &pick.choice.catalog) {
                    Err(Stop::Failed(cause)) => {
                        // Two bundles can contradict each other: each dependency has the same cause.
                        if !failures.contains(&cause) {
                            failures.push(*cause);
                        }
                        continue;
                    }
                    added => added?,
                };
                if let Some(needed) = added {
                    if !self.edges.contains_key(&needed) && !queue.contains(&needed) {
                        queue.push_back(needed.clone());
                    }
                    self.edges.entry(package.clone()).or_default().push(needed);
                }
            }
            self.edges.entry(package).or_default();
        }
        match failures.len() {
            0 => {}
            1 => return Err(failures.swap_remove(0).into()),
            many => {
                let cause = Cause::new(format!("{many} dependencies cannot be satisfied"));
                return Err(cause.because_all(failures).into());
            }
        }
        let (picks, present) = (self.picks.clone(), std::mem::take(&mut self.present));
        Ok(order::plan(self.input, picks, &self.edges, &self.required, present))
    }

    fn chooses(&self, bundle: &str) -> bool {
        self.picks.values().any(|pick| *pick.choice.bundle == *bundle)
    }

    /// Makes the plan meet a dependency. Returns the package that meets it, if it is in the plan.
    fn add(&mut self, required: RequiredDependency, catalog: &str) -> Result<Option<String>, Stop> {
        let meets = |pick: &Pick| required.dependency.is_met_by(&pick.provider);
        let chosen = self.picks.iter().find(|(_, pick)| meets(pick)).map(|(name, _)| name.clone());
        if let Some(package) = chosen {
            self.note(&package, required);
            return Ok(Some(package));
        }
        let package = match required.dependency.package() {
            Some((package, _)) => package.to_owned(),
            None => self.provider_package(&required, catalog)?,
        };
        if let Some(existing) = self.input.extensions.iter().find(|one| one.package == package) {
            if existing.version.is_some() {
                return Err(outdated(existing, &required).into());
            }
            let source = ProviderSource::Extension(existing.name.clone());
            self.present.push(PresentDependency { required, source, is_pending: true });
            return Ok(None);
        }
        if let Some(pick) = self.picks.get(&package) {
            // Its choice did not know of the dependency.
            let replaced = pick.choice.bundle.to_string();
            return Err(Stop::Again(Box::new((package, required, replaced))));
        }
        self.note(&package, required);
        let pick = self.pick(&package, Some(catalog))?;
        self.picks.insert(package.clone(), pick);
        Ok(Some(package))
    }

    fn note(&mut self, package: &str, required: RequiredDependency) {
        let known = self.required.entry(package.to_owned()).or_default();
        if !known.contains(&required) {
            known.push(required);
        }
    }

    /// The package that provides what no package is named for: of the highest priority, then one whose newest
    /// bundle provides it.
    fn provider_package(
        &self,
        required: &RequiredDependency,
        catalog: &str,
    ) -> Result<String, Cause> {
        if required.dependency.is_unreadable() {
            return Err(self.no_provider(required));
        }
        let providers = self.providers.get_or_init(|| providers(self.input.catalogs));
        let may_provide = |(_, bundles): &(&&String, &Vec<Provider>)| {
            bundles.iter().any(|bundle| required.dependency.is_met_by(bundle))
        };
        let (mut found, mut in_several) = (Vec::new(), Vec::new());
        for (&package, _) in providers.iter().filter(may_provide) {
            match self.best(package, std::slice::from_ref(required), Some(catalog)) {
                Ok(Some(pick)) => found.push((package, pick)),
                Err(failure) if failure.kind == ExtensionFailureKind::Ambiguous => {
                    let competing = failure.competing_catalogs.iter();
                    let priority = competing.map(|&at| failure.considered[at].priority).max();
                    in_several.push((package, priority.unwrap_or_default()));
                }
                Ok(None) | Err(_) => {}
            }
        }
        let provides = |package: &&String| {
            found.iter().any(|(found, _)| found == package)
                || in_several.iter().any(|(found, _)| found == package)
        };
        if let Some(preferred) = self.input.preferred.iter().find(provides) {
            return Ok(preferred.clone());
        }
        let count = found.len() + in_several.len();
        let priorities = found.iter().map(|(_, pick)| pick.priority);
        let highest = priorities.chain(in_several.iter().map(|(_, priority)| *priority)).max();
        found.retain(|(_, pick)| Some(pick.priority) == highest);
        in_several.retain(|(_, priority)| Some(*priority) == highest);
        if found.iter().any(|(_, pick)| !pick.is_pinned) {
            found.retain(|(_, pick)| !pick.is_pinned);
        }
        match (found.as_slice(), in_several.as_slice()) {
            // Of a package in several catalogs, its choice says between which of them the user has to decide.
            ([(package, _)], _) | ([], [(package, _)]) => Ok((*package).clone()),
            ([], []) => Err(self.no_provider(required)),
            (found, in_several) => {
                let lines = found.iter().map(|(package, pick)| {
                    let ExtensionChoice { bundle, catalog, .. } = &pick.choice;
                    let priority = pick.priority;
                    (
                        *package,
                        format!("{bundle} of ClusterCatalog {catalog} (priority {priority})"),
                    )
                });
                let several = in_several.iter().map(|(package, _)| {
                    (*package, "in several ClusterCatalogs of the same priority".to_owned())
                });
                let shown: Vec<(&String, String)> =
                    if found.is_empty() { several.collect() } else { lines.collect() };
                Err(many_providers(required, &shown, count - shown.len()))
            }
        }
    }

    /// The cause that no catalog has a provider.
    fn no_provider(&self, required: &RequiredDependency) -> Cause {
        let cause =
            Cause::new("no bundle of any catalog satisfies a dependency").because(required.cause());
        if required.dependency.is_unreadable() {
            return cause.remedy("have the author of the bundle correct the property");
        }
        let unread = self.input.catalogs.iter().filter_map(|catalog| {
            let why = catalog.catalog.read_error().filter(|_| catalog.catalog.available)?;
            Some(Cause::new(format!("ClusterCatalog {} is not read: {why}", catalog.catalog.name)))
        });
        cause
            .because_all(unread)
            .remedy("add a ClusterCatalog with a provider, or install the provider in another way")
    }

    /// The cause that no bundle of a package satisfies all dependencies on it.
    fn conflict(&self, package: &str) -> Cause {
        let required = self.required.get(package).map(Vec::as_slice).unwrap_or_default();
        let reasons = required.iter().map(RequiredDependency::cause);
        let root = self.input.request;
        let is_root = root.package == package;
        let has_package =
            self.input.catalogs.iter().any(|catalog| catalog.packages.contains_key(package));
        let what = if !has_package {
            format!("no catalog has package {}", quote(package))
        } else if required.len() > 1 || is_root {
            format!("no bundle of package {} satisfies all dependencies on it", quote(package))
        } else {
            format!("no bundle of package {} satisfies the dependency on it", quote(package))
        };
        let mut cause = Cause::new(what).because_all(reasons);
        if is_root && !root.version.is_empty() {
            cause = cause.because(Cause::new(format!("the requested version is {}", root.version)));
        }
        if has_package {
            let offered = self.offered(package);
            cause = cause.because(Cause::new(format!("the catalogs offer {offered}")));
        }
        cause.remedy("install another version of the dependent, with --version RANGE").remedy(
            "or satisfy the dependency in another way, and install without --with-dependencies, with --dependencies Ignore",
        )
    }

    /// The newest versions of a package, as text.
    fn offered(&self, package: &str) -> String {
        let versions = self.versions(package);
        let names: Vec<String> = versions.iter().take(5).map(ToString::to_string).collect();
        let more = versions.len().saturating_sub(names.len());
        let more = if more == 0 { String::new() } else { format!(" and {more} more") };
        let word = if versions.len() == 1 { "version" } else { "versions" };
        format!("{word} {}{more}", names.join(", "))
    }

    /// The request for a package.
    fn request(&self, package: &str) -> ExtensionRequest {
        let root = self.input.request;
        if root.package == package {
            return ExtensionRequest { dependencies: DependencyPolicy::Require, ..root.clone() };
        }
        ExtensionRequest {
            package: package.to_owned(),
            explicit_releases: root.explicit_releases,
            dependencies: DependencyPolicy::Require,
            ..ExtensionRequest::default()
        }
    }
}

/// The bundles of all catalogs as providers, by package.
fn providers(catalogs: &[PlanCatalog]) -> BTreeMap<&String, Vec<Provider>> {
    let mut providers: BTreeMap<&String, Vec<Provider>> = BTreeMap::new();
    for (package, content) in catalogs.iter().flat_map(|catalog| &catalog.packages) {
        let bundles = content.iter().flat_map(PackageContent::bundles);
        providers.entry(package).or_default().extend(bundles.map(Provider::bundle));
    }
    providers
}

/// The cause that an extension of the cluster has a version that does not satisfy a dependency.
fn outdated(existing: &ExistingExtension, required: &RequiredDependency) -> Cause {
    let ExistingExtension { name, version, .. } = existing;
    let version = version.as_deref().unwrap_or_default();
    let cause = Cause::new(format!(
        "ClusterExtension {name} has version {version}, which does not satisfy the dependency"
    ))
    .because(required.cause());
    let range = required.dependency.version_range();
    let range = range.map_or_else(|| "RANGE".to_owned(), |range| shell_word(&range));
    cause.remedy(format!("update it: mainstay extension update {name} --version {range}"))
}

fn many_providers(
    required: &RequiredDependency,
    found: &[(&String, String)],
    others: usize,
) -> Cause {
    let mut cause = Cause::new(format!("several packages provide {}", required.dependency))
        .because(Cause::new(format!("bundle {} requires it", required.bundle)));
    for (package, what) in found {
        cause = cause
            .because(Cause::new(format!("package {package}: {what}")))
            .remedy(format!("choose it with --dependency {}", shell_word(package)));
    }
    if others > 0 {
        cause = cause.because(Cause::new(format!(
            "{others} more, in catalogs of lower priority or in older versions only"
        )));
    }
    cause
}
