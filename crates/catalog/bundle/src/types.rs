//! The Go types that a bundle is read into.

use crate::shape::{Kind, Shape};
use Kind::{Kube, Many, One, Pointers, Raw, Text, TextMap};

/// `registry.DefinitionKey`: what counts of an owned or required API.
static DEFINITION: Shape = Shape {
    name: "DefinitionKey",
    spelled: "registry.DefinitionKey",
    fields: &[("group", Text), ("kind", Text), ("name", Text), ("version", Text)],
};

pub(crate) static DEFINITIONS: Shape = Shape {
    name: "",
    spelled: r#"struct { Owned []*registry.DefinitionKey "json:\"owned\""; Required []*registry.DefinitionKey "json:\"required\"" }"#,
    fields: &[("owned", Pointers(&DEFINITION)), ("required", Pointers(&DEFINITION))],
};

static RELATED_IMAGE: Shape = Shape {
    name: "RelatedImage",
    spelled: "declcfg.RelatedImage",
    fields: &[("name", Text), ("image", Text)],
};

pub(crate) static RELATED_IMAGES: Kind = Many(&One(&RELATED_IMAGE));

static STRATEGY_DEPLOYMENT: Shape = Shape {
    name: "dep",
    spelled: "registry.dep",
    fields: &[("Name", Text), ("Spec", Kube("api.apps.v1.DeploymentSpec"))],
};

static STRATEGY_SPEC: Shape = Shape {
    name: "strategySpec",
    spelled: "registry.strategySpec",
    fields: &[("Deployments", Many(&One(&STRATEGY_DEPLOYMENT)))],
};

static STRATEGY: Shape = Shape {
    name: "strategy",
    spelled: "registry.strategy",
    fields: &[("strategy", Text), ("spec", One(&STRATEGY_SPEC))],
};

/// What is looked at to find the images of deployments.
pub(crate) static OPERATOR_IMAGES: Shape =
    Shape { name: "csvSpec", spelled: "registry.csvSpec", fields: &[("Install", One(&STRATEGY))] };

pub(crate) static TYPE_META: Shape = Shape {
    name: "TypeMeta",
    spelled: "v1.TypeMeta",
    fields: &[("kind", Text), ("apiVersion", Text)],
};

pub(crate) const OBJECT_META: Kind = Kube("apimachinery.pkg.apis.meta.v1.ObjectMeta");

/// The metadata of a ClusterServiceVersion, read by a type without a name.
pub(crate) static METADATA: Shape = Shape {
    name: "",
    spelled: "struct { Metadata v1.ObjectMeta \"json:\\\"metadata\\\"\" }",
    fields: &[("metadata", OBJECT_META)],
};

pub(crate) static PACKAGE: Shape = Shape {
    name: "Package",
    spelled: "property.Package",
    fields: &[("packageName", Text), ("version", Text), ("release", Text)],
};

pub(crate) static GVK: Shape = Shape {
    name: "GVK",
    spelled: "property.GVK",
    fields: &[("group", Text), ("kind", Text), ("version", Text)],
};

static ITEM: Shape = Shape {
    name: "Property",
    spelled: "registry.Property",
    fields: &[("type", Text), ("value", Raw)],
};

/// The list in the annotation `olm.properties`.
pub(crate) static PROPERTIES: Kind = Many(&One(&ITEM));

/// `metadata/properties.yaml`.
pub(crate) static PROPERTIES_FILE: Shape = Shape {
    name: "PropertiesFile",
    spelled: "registry.PropertiesFile",
    fields: &[("properties", Many(&One(&ITEM)))],
};

static DEPENDENCY: Shape =
    Shape { name: "Dependency", spelled: "registry.Dependency", fields: ITEM.fields };

/// `metadata/dependencies.yaml`.
pub(crate) static DEPENDENCIES_FILE: Shape = Shape {
    name: "DependenciesFile",
    spelled: "registry.DependenciesFile",
    fields: &[("dependencies", Many(&One(&DEPENDENCY)))],
};

/// A file of the folder `metadata`, whatever it holds.
pub(crate) static METADATA_FILE: Shape = Shape {
    name: "metadata",
    spelled: "",
    fields: &[
        ("annotations", TextMap),
        ("dependencies", Many(&One(&ITEM))),
        ("properties", Many(&One(&ITEM))),
    ],
};

static REQUIRED_PACKAGE: Shape = Shape {
    name: "PackageRequired",
    spelled: "property.PackageRequired",
    fields: &[("packageName", Text), ("versionRange", Text)],
};

static PACKAGE_DEPENDENCY: Shape = Shape {
    name: "PackageDependency",
    spelled: "registry.PackageDependency",
    fields: &[("packageName", Text), ("version", Text)],
};

static LABEL_DEPENDENCY: Shape = Shape {
    name: "LabelDependency",
    spelled: "registry.LabelDependency",
    fields: &[("label", Text)],
};

static CEL: Shape = Shape { name: "Cel", spelled: "constraints.Cel", fields: &[("rule", Text)] };

static COMPOUND: Shape = Shape {
    name: "CompoundConstraint",
    spelled: "constraints.CompoundConstraint",
    fields: &[("constraints", Many(&One(&CONSTRAINT)))],
};

static CONSTRAINT: Shape = Shape {
    name: "Constraint",
    spelled: "constraints.Constraint",
    fields: &[
        ("failureMessage", Text),
        ("cel", One(&CEL)),
        ("package", One(&REQUIRED_PACKAGE)),
        ("gvk", One(&GVK)),
        ("all", One(&COMPOUND)),
        ("any", One(&COMPOUND)),
        ("not", One(&COMPOUND)),
    ],
};

/// The value of a property or a dependency, by the list it stands in and its type.
pub(crate) fn property_value(list: &str, kind: &str) -> Option<&'static Shape> {
    Some(match (list, kind) {
        ("dependencies", "olm.package") => &PACKAGE_DEPENDENCY,
        ("properties", "olm.package") => &PACKAGE,
        (_, "olm.package.required") => &REQUIRED_PACKAGE,
        (_, "olm.gvk" | "olm.gvk.required") => &GVK,
        (_, "olm.label") => &LABEL_DEPENDENCY,
        (_, "olm.constraint") => &CONSTRAINT,
        _ => return None,
    })
}

/// Annotations of a bundle that upstream reads: package, channels, default channel.
pub(crate) const PACKAGE_KEY: &str = "operators.operatorframework.io.bundle.package.v1";
pub(crate) const CHANNELS_KEY: &str = "operators.operatorframework.io.bundle.channels.v1";
pub(crate) const DEFAULT_KEY: &str = "operators.operatorframework.io.bundle.channel.default.v1";

static ANNOTATIONS: Shape = Shape {
    name: "Annotations",
    spelled: "registry.Annotations",
    fields: &[(PACKAGE_KEY, Text), (CHANNELS_KEY, Text), (DEFAULT_KEY, Text)],
};

/// `metadata/annotations.yaml`.
pub(crate) static ANNOTATIONS_FILE: Shape = Shape {
    name: "AnnotationsFile",
    spelled: "registry.AnnotationsFile",
    fields: &[("annotations", One(&ANNOTATIONS))],
};

/// Types of operators and of Kubernetes, by their names in the table.
pub(crate) const CSV_V1ALPHA1: &str =
    "operator-framework.api.pkg.operators.v1alpha1.ClusterServiceVersion";
pub(crate) const CLUSTER_SERVICE_VERSION: Kind = Kube(CSV_V1ALPHA1);
pub(crate) const SPEC: Kind =
    Kube("operator-framework.api.pkg.operators.v1alpha1.ClusterServiceVersionSpec");
pub(crate) const INSTALL: Kind =
    Kube("operator-framework.api.pkg.operators.v1alpha1.NamedInstallStrategy");
pub(crate) const INSTALL_DETAILS: Kind =
    Kube("operator-framework.api.pkg.operators.v1alpha1.StrategyDetailsDeployment");
/// The value of the property `olm.csv.metadata`.
pub(crate) const CSV_METADATA: &str = "operator-registry.alpha.property.CSVMetadata";

pub(crate) const CRD_V1: &str =
    "apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition";
pub(crate) const CRD_V1BETA1: &str =
    "apiextensions-apiserver.pkg.apis.apiextensions.v1beta1.CustomResourceDefinition";

static PACKAGE_CHANNEL: Shape = Shape {
    name: "PackageChannel",
    spelled: "manifests.PackageChannel",
    fields: &[("name", Text), ("currentCSV", Text)],
};

/// A package as it was described before there were bundles.
pub(crate) static PACKAGE_MANIFEST: Shape = Shape {
    name: "PackageManifest",
    spelled: "manifests.PackageManifest",
    fields: &[
        ("packageName", Text),
        ("channels", Many(&One(&PACKAGE_CHANNEL))),
        ("defaultChannel", Text),
    ],
};

/// The types and metadata of any object.
pub(crate) static META: Shape = Shape {
    name: "Meta",
    spelled: "bundle.Meta",
    fields: &[("kind", Text), ("apiVersion", Text), ("metadata", OBJECT_META)],
};
