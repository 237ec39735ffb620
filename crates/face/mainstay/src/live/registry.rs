//! The content of a catalog, asked of its registry: what the original asks for, in the same order.

use mainstay_cause::Cause;
use mainstay_registry::client::{Connection, Fault};
use mainstay_registry::grpc::api::{Bundle, GroupVersionKind};
use mainstay_resolver::universe::{
    ApiData, BundleData, CatalogData, ChannelData, EntryData, PackageData, PropertyData,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long a registry may take to tell everything, unless people are more patient.
const WHOLE: Duration = Duration::from_mins(2);

/// Reads everything that a registry holds. It may take `patience` to accept the connection, and as
/// long again for each further message.
pub(super) async fn read(address: &str, patience: Duration) -> Result<CatalogData, Cause> {
    let whole = WHOLE.max(patience);
    match tokio::time::timeout(whole, ask(address, patience)).await {
        Ok(answer) => answer.map_err(|fault| {
            let late = fault.is_late();
            let cause = Cause::new(fault.to_string());
            if late { cause.remedy("give it longer with --timeout SECONDS") } else { cause }
        }),
        Err(_) => {
            Err(Cause::new(format!("it did not tell everything within {} s", whole.as_secs())))
        }
    }
}

async fn ask(address: &str, patience: Duration) -> Result<CatalogData, Fault> {
    let connection = Connection::open(&address.parse()?, patience).await?;
    let mut bundles = connection.bundles().await?;
    let mut content = Content::default();
    while let Some(bundle) = bundles.next().await? {
        content.add(bundle);
    }
    for package in content.packages.values_mut() {
        match connection.package(&package.name).await {
            Ok(answer) => package.default_channel = answer.default_channel_name,
            // The original leaves such a package out, too.
            Err(fault) if fault.is_answer() => package.get_package_fails = true,
            Err(fault) => return Err(fault),
        }
    }
    Ok(content.finish())
}

/// What was told so far.
#[derive(Default)]
struct Content {
    packages: BTreeMap<String, PackageData>,
    bundles: Vec<BundleData>,
    known: BTreeSet<(String, String)>,
}

impl Content {
    /// One message: the place of a bundle in a channel, and all that the bundle says.
    fn add(&mut self, bundle: Bundle) {
        let package = self.packages.entry(bundle.package_name.clone()).or_insert_with(|| {
            PackageData { name: bundle.package_name.clone(), ..PackageData::default() }
        });
        let at = package.channels.iter().position(|channel| channel.name == bundle.channel_name);
        let at = at.unwrap_or_else(|| {
            let name = bundle.channel_name.clone();
            package.channels.push(ChannelData { name, ..ChannelData::default() });
            package.channels.len() - 1
        });
        package.channels[at].entries.push(EntryData {
            name: bundle.csv_name.clone(),
            replaces: Some(bundle.replaces).filter(|name| !name.is_empty()),
            skips: bundle.skips,
            skip_range: Some(bundle.skip_range).filter(|range| !range.is_empty()),
        });
        if !self.known.insert((bundle.package_name.clone(), bundle.csv_name.clone())) {
            return;
        }
        let properties = bundle.properties.iter();
        let dependencies = bundle.dependencies.iter();
        self.bundles.push(BundleData {
            name: bundle.csv_name,
            package: bundle.package_name,
            version: bundle.version,
            properties: properties
                .map(|property| PropertyData::new(&*property.r#type, &property.value))
                .collect(),
            dependencies: dependencies
                .map(|dependency| PropertyData::new(&*dependency.r#type, &dependency.value))
                .collect(),
            provided_apis: bundle.provided_apis.into_iter().map(api).collect(),
            required_apis: bundle.required_apis.into_iter().map(api).collect(),
            min_kube_version: min_kube_version(&bundle.csv_json),
            ..BundleData::default()
        });
    }

    fn finish(self) -> CatalogData {
        CatalogData {
            packages: self.packages.into_values().collect(),
            bundles: self.bundles,
            ..CatalogData::default()
        }
    }
}

/// The least version of Kubernetes that a ClusterServiceVersion asks for; empty if none, or if the
/// registry leaves the manifest out of its list, as it does for bundles that are images.
fn min_kube_version(csv: &str) -> String {
    let csv: Value = serde_json::from_str(csv).unwrap_or_default();
    csv["spec"]["minKubeVersion"].as_str().unwrap_or_default().to_owned()
}

fn api(gvk: GroupVersionKind) -> ApiData {
    let plural = Some(gvk.plural).filter(|plural| !plural.is_empty());
    ApiData { group: gvk.group, version: gvk.version, kind: gvk.kind, plural }
}
