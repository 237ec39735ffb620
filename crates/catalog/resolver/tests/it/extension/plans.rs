//! Plans of extensions with all that they need, over published catalogs.

use mainstay_catalog::{Catalog, KeptContent, LoadOptions};
use mainstay_resolver::OperatorApi;
use mainstay_resolver::extension::{
    self, CATALOG_NAME_LABEL, Dependency, DependencyPolicy, ExtensionPlan, ExtensionRequest,
    InputCatalog, InputCatalogContent, PackageContent, PlanCatalog, PlanInput, Provider,
    plan_installation,
};
use serde_json::json;
use std::collections::BTreeMap;

/// The catalogs, by priority, and whether they are there.
const CATALOGS: [(&str, i32); 2] = [("catalog-certified-v4.14", 1), ("catalog-community-v4.19", 0)];

fn read() -> Option<Vec<PlanCatalog>> {
    let mut catalogs = Vec::new();
    for (name, priority) in CATALOGS {
        let folder = mainstay_testdata::unpack(name, "plans of published extensions")?;
        let options = LoadOptions { keep: KeptContent::Facts, ..LoadOptions::default() };
        let catalog = Catalog::load(folder.path(), &options).unwrap();
        let packages = catalog.packages();
        let packages =
            packages.map(|package| (package.name.to_string(), Ok(PackageContent::of(package))));
        let input = InputCatalog::new(name, InputCatalogContent::Package(None));
        catalogs.push(PlanCatalog {
            catalog: InputCatalog { priority, ..input },
            packages: packages.collect(),
        });
    }
    Some(catalogs)
}

/// The content of a package as the resolver sees it.
fn views<'c>(catalogs: &'c [PlanCatalog], package: &str) -> Vec<InputCatalog<'c>> {
    let view = |catalog: &'c PlanCatalog| {
        let content = catalog.packages.get(package).map(|content| content.as_ref().unwrap());
        InputCatalog { content: InputCatalogContent::Package(content), ..catalog.catalog.clone() }
    };
    catalogs.iter().map(view).collect()
}

/// Checks that a controller which installs the steps one after the other comes to an end.
fn check(
    plan: &ExtensionPlan,
    catalogs: &[PlanCatalog],
    cluster: &[Provider],
    root: &ExtensionRequest,
) {
    let mut providers = cluster.to_vec();
    let mut missing: Vec<&Dependency> = Vec::new();
    for step in &plan.steps {
        let request = if step.package == root.package {
            ExtensionRequest { dependencies: DependencyPolicy::Require, ..root.clone() }
        } else {
            ExtensionRequest {
                package: step.package.clone(),
                version: step.version.clone(),
                selector: step
                    .catalog
                    .as_ref()
                    .map(|name| json!({"matchLabels": {CATALOG_NAME_LABEL: name}})),
                dependencies: DependencyPolicy::Require,
                ..ExtensionRequest::default()
            }
        };
        let views = views(catalogs, &step.package);
        let choice = extension::resolve(&request, None, &views).unwrap();
        assert_eq!(choice.bundle, step.choice.bundle);
        let unmet =
            step.choice.dependencies.iter().filter(|one| one.provider(&providers).is_none());
        let unmet: Vec<&Dependency> = unmet.collect();
        assert!(unmet.is_empty() || step.needs_later, "{} {unmet:?}", step.choice.bundle);
        missing.extend(unmet);
        let view = views.iter().find(|view| view.name == choice.catalog).unwrap();
        let InputCatalogContent::Package(Some(content)) = view.content else { unreachable!() };
        let mut bundles = content.bundles();
        providers.push(Provider::bundle(bundles.find(|one| one.name == choice.bundle).unwrap()));
    }
    assert!(missing.iter().all(|one| one.provider(&providers).is_some()), "{missing:?}");
}

/// How many published bundles with dependencies have a plan of so many extensions, or none for a reason.
fn outcomes(catalogs: &[PlanCatalog], providers: &[Provider]) -> BTreeMap<String, usize> {
    let mut outcomes = BTreeMap::new();
    for catalog in catalogs {
        for (package, content) in &catalog.packages {
            let bundles = content.as_ref().unwrap().bundles();
            for bundle in bundles.filter(|bundle| bundle.dependencies().next().is_some()) {
                let version = bundle.version.split('+').next().unwrap();
                let selector = json!({"matchLabels": {CATALOG_NAME_LABEL: catalog.catalog.name}});
                let request = ExtensionRequest {
                    package: package.clone(),
                    version: version.to_owned(),
                    selector: Some(selector),
                    ..ExtensionRequest::default()
                };
                let input = PlanInput {
                    request: &request,
                    catalogs,
                    extensions: &[],
                    providers,
                    preferred: &[],
                };
                let outcome = match plan_installation(&input) {
                    Ok(plan) => {
                        check(&plan, catalogs, providers, &request);
                        format!("{} in the plan", plan.steps.len())
                    }
                    Err(cause) => cause.what().split('"').next().unwrap_or_default().to_owned(),
                };
                *outcomes.entry(outcome).or_default() += 1;
            }
        }
    }
    outcomes
}

/// Each published bundle with dependencies, which OLM v1 refuses, has a plan or a reason why it has none. The
/// recorded catalogs are excerpts: the providers of some APIs and older versions are missing there.
#[test]
fn published_bundles_with_dependencies_are_planned() {
    let Some(catalogs) = read() else { return };
    let empty = outcomes(&catalogs, &[]);
    let expected = [
        ("2 in the plan", 7),
        ("2 dependencies cannot be satisfied", 18),
        ("3 dependencies cannot be satisfied", 21),
        ("4 dependencies cannot be satisfied", 1),
        ("no bundle of any catalog satisfies a dependency", 1),
        ("no bundle of package ", 2),
        ("no catalog has package ", 1),
    ];
    let expected = expected.map(|(outcome, count)| (outcome.to_owned(), count));
    assert_eq!(empty, BTreeMap::from(expected));
    let apis = [
        ("cert-manager.io", "v1", "Certificate"),
        ("cert-manager.io", "v1", "ClusterIssuer"),
        ("cert-manager.io", "v1", "Issuer"),
        ("operator.ibm.com", "v3", "CommonService"),
        ("monitoring.coreos.com", "v1", "PodMonitor"),
        ("monitoring.coreos.com", "v1", "PrometheusRule"),
        ("monitoring.coreos.com", "v1", "ServiceMonitor"),
    ];
    let crds = apis.map(|(group, version, kind)| {
        Provider::crd(kind, [OperatorApi::new(group, version, kind)])
    });
    let with_crds = outcomes(&catalogs, &crds);
    mainstay_testdata::ran(&format!("plans of published extensions: {with_crds:?}"));
    assert_eq!(with_crds.get("1 in the plan"), Some(&21), "{with_crds:?}");
}
