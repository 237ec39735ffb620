//! The Go types that upstream decodes a bundle into.

use DeclaredType::{List, Pointers, Raw, Struct, Table, Text, TextMap};
use mainstay_schema::gojson::{DeclaredStruct, DeclaredType};

/// `registry.DefinitionKey`: an owned or required API.
static DEFINITION: DeclaredStruct = DeclaredStruct {
    name: "DefinitionKey",
    spelled: "registry.DefinitionKey",
    fields: &[("group", Text), ("kind", Text), ("name", Text), ("version", Text)],
};

pub(crate) static DEFINITIONS: DeclaredStruct = DeclaredStruct {
    name: "",
    spelled: r#"struct { Owned []*registry.DefinitionKey "json:\"owned\""; Required []*registry.DefinitionKey "json:\"required\"" }"#,
    fields: &[("owned", Pointers(&DEFINITION)), ("required", Pointers(&DEFINITION))],
};

static RELATED_IMAGE: DeclaredStruct = DeclaredStruct {
    name: "RelatedImage",
    spelled: "declcfg.RelatedImage",
    fields: &[("name", Text), ("image", Text)],
};

pub(crate) static RELATED_IMAGES: DeclaredType = List(&Struct(&RELATED_IMAGE));

static STRATEGY_DEPLOYMENT: DeclaredStruct = DeclaredStruct {
    name: "dep",
    spelled: "registry.dep",
    fields: &[("Name", Text), ("Spec", Table("api.apps.v1.DeploymentSpec"))],
};

static STRATEGY_SPEC: DeclaredStruct = DeclaredStruct {
    name: "strategySpec",
    spelled: "registry.strategySpec",
    fields: &[("Deployments", List(&Struct(&STRATEGY_DEPLOYMENT)))],
};

static STRATEGY: DeclaredStruct = DeclaredStruct {
    name: "strategy",
    spelled: "registry.strategy",
    fields: &[("strategy", Text), ("spec", Struct(&STRATEGY_SPEC))],
};

/// The part of `spec` that holds the images of deployments.
pub(crate) static OPERATOR_IMAGES: DeclaredStruct = DeclaredStruct {
    name: "csvSpec",
    spelled: "registry.csvSpec",
    fields: &[("Install", Struct(&STRATEGY))],
};

pub(crate) static TYPE_META: DeclaredStruct = DeclaredStruct {
    name: "TypeMeta",
    spelled: "v1.TypeMeta",
    fields: &[("kind", Text), ("apiVersion", Text)],
};

pub(crate) const OBJECT_META: DeclaredType = Table("apimachinery.pkg.apis.meta.v1.ObjectMeta");

/// The metadata of a ClusterServiceVersion, decoded into an anonymous struct.
pub(crate) static METADATA: DeclaredStruct = DeclaredStruct {
    name: "",
    spelled: "struct { Metadata v1.ObjectMeta \"json:\\\"metadata\\\"\" }",
    fields: &[("metadata", OBJECT_META)],
};

pub(crate) static PACKAGE: DeclaredStruct = DeclaredStruct {
    name: "Package",
    spelled: "property.Package",
    fields: &[("packageName", Text), ("version", Text), ("release", Text)],
};

pub(crate) static GVK: DeclaredStruct = DeclaredStruct {
    name: "GVK",
    spelled: "property.GVK",
    fields: &[("group", Text), ("kind", Text), ("version", Text)],
};

static ITEM: DeclaredStruct = DeclaredStruct {
    name: "Property",
    spelled: "registry.Property",
    fields: &[("type", Text), ("value", Raw)],
};

/// The list in the annotation `olm.properties`.
pub(crate) static PROPERTIES: DeclaredType = List(&Struct(&ITEM));

/// `metadata/properties.yaml`.
pub(crate) static PROPERTIES_FILE: DeclaredStruct = DeclaredStruct {
    name: "PropertiesFile",
    spelled: "registry.PropertiesFile",
    fields: &[("properties", List(&Struct(&ITEM)))],
};

static DEPENDENCY: DeclaredStruct =
    DeclaredStruct { name: "Dependency", spelled: "registry.Dependency", fields: ITEM.fields };

/// `metadata/dependencies.yaml`.
pub(crate) static DEPENDENCIES_FILE: DeclaredStruct = DeclaredStruct {
    name: "DependenciesFile",
    spelled: "registry.DependenciesFile",
    fields: &[("dependencies", List(&Struct(&DEPENDENCY)))],
};

/// Any file of the folder `metadata`.
pub(crate) static METADATA_FILE: DeclaredStruct = DeclaredStruct {
    name: "metadata",
    spelled: "",
    fields: &[
        ("annotations", TextMap),
        ("dependencies", List(&Struct(&ITEM))),
        ("properties", List(&Struct(&ITEM))),
    ],
};

static REQUIRED_PACKAGE: DeclaredStruct = DeclaredStruct {
    name: "PackageRequired",
    spelled: "property.PackageRequired",
    fields: &[("packageName", Text), ("versionRange", Text)],
};

static PACKAGE_DEPENDENCY: DeclaredStruct = DeclaredStruct {
    name: "PackageDependency",
    spelled: "registry.PackageDependency",
    fields: &[("packageName", Text), ("version", Text)],
};

static LABEL_DEPENDENCY: DeclaredStruct = DeclaredStruct {
    name: "LabelDependency",
    spelled: "registry.LabelDependency",
    fields: &[("label", Text)],
};

static CEL: DeclaredStruct =
    DeclaredStruct { name: "Cel", spelled: "constraints.Cel", fields: &[("rule", Text)] };

static COMPOUND: DeclaredStruct = DeclaredStruct {
    name: "CompoundConstraint",
    spelled: "constraints.CompoundConstraint",
    fields: &[("constraints", List(&Struct(&CONSTRAINT)))],
};

static CONSTRAINT: DeclaredStruct = DeclaredStruct {
    name: "Constraint",
    spelled: "constraints.Constraint",
    fields: &[
        ("failureMessage", Text),
        ("cel", Struct(&CEL)),
        ("package", Struct(&REQUIRED_PACKAGE)),
        ("gvk", Struct(&GVK)),
        ("all", Struct(&COMPOUND)),
        ("any", Struct(&COMPOUND)),
        ("not", Struct(&COMPOUND)),
    ],
};

/// The type of the value of a property or dependency, by its list and its type name.
pub(crate) fn property_value(list: &str, kind: &str) -> Option<&'static DeclaredStruct> {
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

static ANNOTATIONS: DeclaredStruct = DeclaredStruct {
    name: "Annotations",
    spelled: "registry.Annotations",
    fields: &[(PACKAGE_KEY, Text), (CHANNELS_KEY, Text), (DEFAULT_KEY, Text)],
};

/// `metadata/annotations.yaml`.
pub(crate) static ANNOTATIONS_FILE: DeclaredStruct = DeclaredStruct {
    name: "AnnotationsFile",
    spelled: "registry.AnnotationsFile",
    fields: &[("annotations", Struct(&ANNOTATIONS))],
};

/// Names of OLM and Kubernetes types in the table of Go types.
pub(crate) const CSV_V1ALPHA1: &str =
    "operator-framework.api.pkg.operators.v1alpha1.ClusterServiceVersion";
pub(crate) const CLUSTER_SERVICE_VERSION: DeclaredType = Table(CSV_V1ALPHA1);
pub(crate) const SPEC: DeclaredType =
    Table("operator-framework.api.pkg.operators.v1alpha1.ClusterServiceVersionSpec");
pub(crate) const INSTALL: DeclaredType =
    Table("operator-framework.api.pkg.operators.v1alpha1.NamedInstallStrategy");
pub(crate) const INSTALL_DETAILS: DeclaredType =
    Table("operator-framework.api.pkg.operators.v1alpha1.StrategyDetailsDeployment");
/// The value of the property `olm.csv.metadata`.
pub(crate) const CSV_METADATA: &str = "operator-registry.alpha.property.CSVMetadata";

pub(crate) const CRD_V1: &str =
    "apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition";
pub(crate) const CRD_V1BETA1: &str =
    "apiextensions-apiserver.pkg.apis.apiextensions.v1beta1.CustomResourceDefinition";

static PACKAGE_CHANNEL: DeclaredStruct = DeclaredStruct {
    name: "PackageChannel",
    spelled: "manifests.PackageChannel",
    fields: &[("name", Text), ("currentCSV", Text)],
};

/// The package manifest, the format of packages before bundles.
pub(crate) static PACKAGE_MANIFEST: DeclaredStruct = DeclaredStruct {
    name: "PackageManifest",
    spelled: "manifests.PackageManifest",
    fields: &[
        ("packageName", Text),
        ("channels", List(&Struct(&PACKAGE_CHANNEL))),
        ("defaultChannel", Text),
    ],
};

/// The type and metadata of any object.
pub(crate) static META: DeclaredStruct = DeclaredStruct {
    name: "Meta",
    spelled: "bundle.Meta",
    fields: &[("kind", Text), ("apiVersion", Text), ("metadata", OBJECT_META)],
};
