//! An operator of OLM classic: its Subscription and the ClusterServiceVersion that it installed.

use mainstay_api::names;
use mainstay_object::Object;
use serde_json::Value;

/// An installed operator.
#[derive(Clone, Copy, Debug)]
pub struct ClassicOperator<'a> {
    /// Its Subscription.
    pub subscription: &'a Object,
    /// The ClusterServiceVersion of `status.installedCSV`.
    pub csv: &'a Object,
}

impl<'a> ClassicOperator<'a> {
    /// The namespace of the operator.
    pub fn namespace(&self) -> &'a str {
        self.subscription.namespace()
    }

    /// The package.
    pub fn package(&self) -> &'a str {
        package_of(self.subscription)
    }

    /// The version of the bundle: that of the property `olm.package`, or `spec.version`.
    pub fn version(&self) -> String {
        let of_property = properties(self.csv).into_iter().find_map(|(kind, value)| {
            let version = value["version"].as_str().filter(|version| !version.is_empty());
            version.filter(|_| kind == "olm.package").map(str::to_owned)
        });
        of_property
            .unwrap_or_else(|| self.csv.str(&["spec", "version"]).unwrap_or_default().to_owned())
    }
}

/// `spec.name` of a Subscription: the package.
pub(crate) fn package_of(subscription: &Object) -> &str {
    subscription.str(&["spec", "name"]).unwrap_or_default()
}

/// `status.installedCSV` of a Subscription; empty before the first installation.
pub(crate) fn installed_csv(subscription: &Object) -> &str {
    subscription.str(&["status", "installedCSV"]).unwrap_or_default()
}

/// `namespace/name`.
pub(crate) fn reference(object: &Object) -> String {
    format!("{}/{}", object.namespace(), object.name())
}

/// Type and value of the properties in the annotation of a ClusterServiceVersion: a list, or an object with
/// the list in `properties`.
pub(crate) fn properties(csv: &Object) -> Vec<(String, Value)> {
    let text = csv.annotation(names::PROPERTIES).unwrap_or_default();
    let parsed: Value = serde_json::from_str(text).unwrap_or_default();
    let list = parsed.as_array().or_else(|| parsed["properties"].as_array());
    let all = list.map(Vec::as_slice).unwrap_or_default().iter();
    all.map(|property| {
        let kind = property["type"].as_str().unwrap_or_default().to_owned();
        (kind, property["value"].clone())
    })
    .collect()
}
