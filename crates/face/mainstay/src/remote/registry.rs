//! Catalog content from a registry server over gRPC, with OLM's requests in OLM's order.

use mainstay_cause::Cause;
use mainstay_registry::client::{RegistryConnection, RpcError};
use mainstay_registry::grpc::api::{Bundle, GroupVersionKind};
use mainstay_resolver::fixture::{
    ApiData, BundleData, CatalogData, ChannelData, EntryData, PackageData, PropertyData,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How long a registry may take to send its whole content, unless --timeout is longer.
const TOTAL_TIMEOUT: Duration = Duration::from_mins(2);

/// Reads the whole content of a registry. The registry may take `timeout` to accept the connection, and as
/// long again for each further message.
pub(super) async fn read(address: &str, timeout: Duration) -> Result<CatalogData, Cause> {
    let total = TOTAL_TIMEOUT.max(timeout);
    match tokio::time::timeout(total, read_catalog(address, timeout)).await {
        Ok(response) => response.map_err(|fault| {
            let times_out = fault.is_timeout();
            let cause = Cause::new(fault.to_string());
            if times_out { cause.remedy("allow more time with --timeout SECONDS") } else { cause }
        }),
        Err(_) => Err(Cause::new(format!(
            "it did not send its whole content within {} s",
            total.as_secs()
        ))),
    }
}

async fn read_catalog(address: &str, timeout: Duration) -> Result<CatalogData, RpcError> {
    let connection = RegistryConnection::open(&address.parse()?, timeout).await?;
    let mut bundles = connection.bundles().await?;
    let mut builder = CatalogBuilder::default();
    while let Some(bundle) = bundles.next().await? {
        builder.add(bundle);
    }
    for package in builder.packages.values_mut() {
        match connection.package(&package.name).await {
            Ok(response) => package.default_channel = response.default_channel_name,
            // OLM leaves such a package out, too.
            Err(fault) if fault.is_from_server() => package.get_package_fails = true,
            Err(fault) => return Err(fault),
        }
    }
    Ok(builder.finish())
}

/// Builds catalog content from the messages received so far.
#[derive(Default)]
struct CatalogBuilder {
    packages: BTreeMap<String, PackageData>,
    bundles: Vec<BundleData>,
    bundle_keys: BTreeSet<(String, String)>,
}

impl CatalogBuilder {
    /// Adds one message: a channel entry of a bundle, and the bundle itself.
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
        if !self.bundle_keys.insert((bundle.package_name.clone(), bundle.csv_name.clone())) {
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

/// `spec.minKubeVersion` of a ClusterServiceVersion. Empty if unset, or if the registry's list omits the
/// manifest, as it does for bundles by image.
fn min_kube_version(csv: &str) -> String {
    let csv: Value = serde_json::from_str(csv).unwrap_or_default();
    csv["spec"]["minKubeVersion"].as_str().unwrap_or_default().to_owned()
}

fn api(gvk: GroupVersionKind) -> ApiData {
    let plural = Some(gvk.plural).filter(|plural| !plural.is_empty());
    ApiData { group: gvk.group, version: gvk.version, kind: gvk.kind, plural }
}
