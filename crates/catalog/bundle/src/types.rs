//! The Go types that a bundle is read into.

use crate::{
    mismatch::{ReleaseError, TextError},
    shape::{Kind, Shape},
};
use Kind::{Bool, Int, Kube, Many, Named, One, Own, Pointers, Raw, Text, TextMap};

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

static RESOURCE: Shape = Shape {
    name: "APIResourceReference",
    spelled: "v1alpha1.APIResourceReference",
    fields: &[("name", Text), ("kind", Text), ("version", Text)],
};

macro_rules! descriptor {
    ($static:ident, $name:literal, $spelled:literal) => {
        static $static: Shape = Shape {
            name: $name,
            spelled: $spelled,
            fields: &[
                ("path", Text),
                ("displayName", Text),
                ("description", Text),
                ("x-descriptors", Many(&Text)),
                ("value", Raw),
            ],
        };
    };
}
descriptor!(STATUS_DESCRIPTOR, "StatusDescriptor", "v1alpha1.StatusDescriptor");
descriptor!(SPEC_DESCRIPTOR, "SpecDescriptor", "v1alpha1.SpecDescriptor");
descriptor!(ACTION_DESCRIPTOR, "ActionDescriptor", "v1alpha1.ActionDescriptor");

static CRD: Shape = Shape {
    name: "CRDDescription",
    spelled: "v1alpha1.CRDDescription",
    fields: &[
        ("name", Text),
        ("version", Text),
        ("kind", Text),
        ("displayName", Text),
        ("description", Text),
        ("resources", Many(&One(&RESOURCE))),
        ("statusDescriptors", Many(&One(&STATUS_DESCRIPTOR))),
        ("specDescriptors", Many(&One(&SPEC_DESCRIPTOR))),
        ("actionDescriptors", Many(&One(&ACTION_DESCRIPTOR))),
    ],
};

static CRDS: Shape = Shape {
    name: "CustomResourceDefinitions",
    spelled: "v1alpha1.CustomResourceDefinitions",
    fields: &[("owned", Many(&One(&CRD))), ("required", Many(&One(&CRD)))],
};

static API_SERVICE: Shape = Shape {
    name: "APIServiceDescription",
    spelled: "v1alpha1.APIServiceDescription",
    fields: &[
        ("name", Text),
        ("group", Text),
        ("version", Text),
        ("kind", Text),
        ("deploymentName", Text),
        ("containerPort", Int("int32")),
        ("displayName", Text),
        ("description", Text),
        ("resources", Many(&One(&RESOURCE))),
        ("statusDescriptors", Many(&One(&STATUS_DESCRIPTOR))),
        ("specDescriptors", Many(&One(&SPEC_DESCRIPTOR))),
        ("actionDescriptors", Many(&One(&ACTION_DESCRIPTOR))),
    ],
};

static API_SERVICES: Shape = Shape {
    name: "APIServiceDefinitions",
    spelled: "v1alpha1.APIServiceDefinitions",
    fields: &[("owned", Many(&One(&API_SERVICE))), ("required", Many(&One(&API_SERVICE)))],
};

static INSTALL_MODE: Shape = Shape {
    name: "InstallMode",
    spelled: "v1alpha1.InstallMode",
    fields: &[("type", Named("v1alpha1.InstallModeType")), ("supported", Bool)],
};

static LINK: Shape = Shape {
    name: "AppLink",
    spelled: "v1alpha1.AppLink",
    fields: &[("name", Text), ("url", Text)],
};

static MAINTAINER: Shape = Shape {
    name: "Maintainer",
    spelled: "v1alpha1.Maintainer",
    fields: &[("name", Text), ("email", Text)],
};

static NATIVE_API: Shape = Shape {
    name: "GroupVersionKind",
    spelled: "v1.GroupVersionKind",
    fields: &[("group", Text), ("version", Text), ("kind", Text)],
};

static ICON: Shape = Shape {
    name: "Icon",
    spelled: "v1alpha1.Icon",
    fields: &[("base64data", Text), ("mediatype", Text)],
};

static IMAGE: Shape = Shape {
    name: "RelatedImage",
    spelled: "v1alpha1.RelatedImage",
    fields: &[("name", Text), ("image", Text)],
};

static CLEANUP: Shape =
    Shape { name: "CleanupSpec", spelled: "v1alpha1.CleanupSpec", fields: &[("enabled", Bool)] };

static PERMISSION: Shape = Shape {
    name: "StrategyDeploymentPermissions",
    spelled: "v1alpha1.StrategyDeploymentPermissions",
    fields: &[("serviceAccountName", Text), ("rules", Many(&Kube("api.rbac.v1.PolicyRule")))],
};

static DEPLOYMENT: Shape = Shape {
    name: "StrategyDeploymentSpec",
    spelled: "v1alpha1.StrategyDeploymentSpec",
    fields: &[("name", Text), ("spec", Kube("api.apps.v1.DeploymentSpec")), ("label", TextMap)],
};

pub(crate) static INSTALL_DETAILS: Shape = Shape {
    name: "StrategyDetailsDeployment",
    spelled: "v1alpha1.StrategyDetailsDeployment",
    fields: &[
        ("deployments", Many(&One(&DEPLOYMENT))),
        ("permissions", Many(&One(&PERMISSION))),
        ("clusterPermissions", Many(&One(&PERMISSION))),
    ],
};

pub(crate) static INSTALL: Shape = Shape {
    name: "NamedInstallStrategy",
    spelled: "v1alpha1.NamedInstallStrategy",
    fields: &[("strategy", Text), ("spec", One(&INSTALL_DETAILS))],
};

static WEBHOOK: Shape = Shape {
    name: "WebhookDescription",
    spelled: "v1alpha1.WebhookDescription",
    fields: &[
        ("generateName", Text),
        ("type", Named("v1alpha1.WebhookAdmissionType")),
        ("deploymentName", Text),
        ("containerPort", Int("int32")),
        ("targetPort", Kube("apimachinery.pkg.util.intstr.IntOrString")),
        ("rules", Many(&Kube("api.admissionregistration.v1.RuleWithOperations"))),
        ("failurePolicy", Named("v1.FailurePolicyType")),
        ("matchPolicy", Named("v1.MatchPolicyType")),
        ("objectSelector", Kube("apimachinery.pkg.apis.meta.v1.LabelSelector")),
        ("sideEffects", Named("v1.SideEffectClass")),
        ("timeoutSeconds", Int("int32")),
        ("admissionReviewVersions", Many(&Text)),
        ("reinvocationPolicy", Named("v1.ReinvocationPolicyType")),
        ("webhookPath", Text),
        ("conversionCRDs", Many(&Text)),
    ],
};

pub(crate) static SPEC: Shape = Shape {
    name: "ClusterServiceVersionSpec",
    spelled: "v1alpha1.ClusterServiceVersionSpec",
    fields: &[
        ("install", One(&INSTALL)),
        ("version", Own(version)),
        ("release", Own(release)),
        ("maturity", Text),
        ("customresourcedefinitions", One(&CRDS)),
        ("apiservicedefinitions", One(&API_SERVICES)),
        ("webhookdefinitions", Many(&One(&WEBHOOK))),
        ("nativeAPIs", Many(&One(&NATIVE_API))),
        ("minKubeVersion", Text),
        ("displayName", Text),
        ("description", Text),
        ("keywords", Many(&Text)),
        ("maintainers", Many(&One(&MAINTAINER))),
        ("provider", One(&LINK)),
        ("links", Many(&One(&LINK))),
        ("icon", Many(&One(&ICON))),
        ("installModes", Many(&One(&INSTALL_MODE))),
        ("replaces", Text),
        ("labels", TextMap),
        ("annotations", TextMap),
        ("selector", Kube("apimachinery.pkg.apis.meta.v1.LabelSelector")),
        ("cleanup", One(&CLEANUP)),
        ("skips", Many(&Text)),
        ("relatedImages", Many(&One(&IMAGE))),
    ],
};

/// The whole ClusterServiceVersion, as migrations read it. Of the status, which no bundle has,
/// nothing is looked at.
pub(crate) static CLUSTER_SERVICE_VERSION: Shape = Shape {
    name: "ClusterServiceVersion",
    spelled: "v1alpha1.ClusterServiceVersion",
    fields: &[
        ("kind", Text),
        ("apiVersion", Text),
        ("metadata", OBJECT_META),
        ("spec", One(&SPEC)),
    ],
};

/// The ClusterServiceVersion with all fields that it may have at the top.
pub(crate) static WHOLE_CLUSTER_SERVICE_VERSION: Shape = Shape {
    name: "ClusterServiceVersion",
    spelled: "v1alpha1.ClusterServiceVersion",
    fields: &[
        ("kind", Text),
        ("apiVersion", Text),
        ("metadata", OBJECT_META),
        ("spec", One(&SPEC)),
        ("status", Raw),
    ],
};

/// `olm.csv.metadata`: the fields in their order, where each comes from, and how it is written.
pub(crate) static CSV_METADATA: &[(&str, Source, Kind)] = &[
    ("annotations", Source::Metadata("annotations"), TextMap),
    ("apiServiceDefinitions", Source::Spec("apiservicedefinitions"), One(&API_SERVICES)),
    ("crdDescriptions", Source::Spec("customresourcedefinitions"), One(&CRDS)),
    ("description", Source::Spec("description"), Text),
    ("displayName", Source::Spec("displayName"), Text),
    ("installModes", Source::Spec("installModes"), Many(&One(&INSTALL_MODE))),
    ("keywords", Source::Spec("keywords"), Many(&Text)),
    ("labels", Source::Metadata("labels"), TextMap),
    ("links", Source::Spec("links"), Many(&One(&LINK))),
    ("maintainers", Source::Spec("maintainers"), Many(&One(&MAINTAINER))),
    ("maturity", Source::Spec("maturity"), Text),
    ("minKubeVersion", Source::Spec("minKubeVersion"), Text),
    ("nativeAPIs", Source::Spec("nativeAPIs"), Many(&One(&NATIVE_API))),
    ("provider", Source::Spec("provider"), One(&LINK)),
];

/// Where a field of `olm.csv.metadata` comes from.
pub(crate) enum Source {
    Metadata(&'static str),
    Spec(&'static str),
}

/// The fields that are written even when they are empty, of the types of `olm.csv.metadata`.
pub(crate) fn always_written(shape: &Shape, field: &str) -> bool {
    match shape.name {
        "CRDDescription" | "APIResourceReference" | "GroupVersionKind" | "InstallMode" => {
            matches!(field, "name" | "version" | "kind" | "group" | "type" | "supported")
        }
        "APIServiceDescription" => matches!(field, "name" | "group" | "version" | "kind"),
        "StatusDescriptor" | "SpecDescriptor" | "ActionDescriptor" => field == "path",
        _ => false,
    }
}

fn version(text: &str) -> Result<(), TextError> {
    mainstay_version::parse_tolerant(text)?;
    Ok(())
}

fn release(text: &str) -> Result<(), TextError> {
    Ok(text.split('.').try_for_each(check_release_part)?)
}

fn check_release_part(part: &str) -> Result<(), ReleaseError> {
    let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if part.is_empty() {
        return Err(ReleaseError::EmptyPart);
    }
    if digits && part.len() > 1 && part.starts_with('0') {
        return Err(ReleaseError::LeadingZeroes(part.to_owned()));
    }
    if !part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return Err(ReleaseError::InvalidCharacters(part.to_owned()));
    }
    if digits && part.parse::<u64>().is_err() {
        return Err(ReleaseError::OutOfRange(part.to_owned()));
    }
    Ok(())
}

/// Types of Kubernetes, by their names in the table.
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
