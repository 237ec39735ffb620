//! ClusterCatalogs as PATH: the documents that the catalog server of a cluster serves.
//!
//! ```text
//! clustercatalog/NAME ─► ClusterCatalog ─► status: its URL ─┬─► on loopback: the server itself, with its CA
//!                                                           └─► in the cluster: the Service proxy of the API server
//!                                                                       └─► documents ─► files in memory
//! ```
//!
//! The documents become files, so the reader of catalog folders reads them, too.

use http::Uri;
use mainstay_api::resources::CLUSTER_CATALOG;
use mainstay_catalog::MemorySource;
use mainstay_cause::Cause;
use mainstay_command::cluster::{CatalogEndpoint, CatalogReadError, ClusterHandle, find_named};
use mainstay_command::exit::CommandFailure;
use mainstay_command::profile::Profile;
use mainstay_command::text::escape_controls;
use mainstay_explain::FetchedPackage;
use mainstay_object::{Object, builtin};
use mainstay_resolver::extension::read_package;
use std::fmt::Write as _;

/// How kubectl writes the kind.
const KINDS: [&str; 4] = [
    "clustercatalog",
    "clustercatalogs",
    "clustercatalog.olm.operatorframework.io",
    "clustercatalogs.olm.operatorframework.io",
];
/// The ConfigMap with the CA of the catalog server, and its key.
const CA_CONFIG_MAP: &str = "catalogd-ca";
const CA_KEY: &str = "ca.crt";
/// All documents of a catalog.
const ALL: &str = "api/v1/all";

/// A ClusterCatalog with its documents.
pub(super) struct ServedContent {
    /// The path as typed.
    pub(super) argument: String,
    pub(super) priority: i64,
    pub(super) files: MemorySource,
}

/// Whether a PATH names a ClusterCatalog. A folder of that name is `./clustercatalog/NAME`.
pub(super) fn names_cluster_catalog(argument: &str) -> bool {
    argument.split_once('/').is_some_and(|(kind, _)| KINDS.contains(&kind))
}

/// The PATH of a ClusterCatalog.
pub(super) fn path_of(catalog: &Object) -> String {
    format!("clustercatalog/{}", catalog.name())
}

/// All ClusterCatalogs that are switched on.
///
/// # Errors
/// They cannot be listed.
pub async fn list(cluster: &impl ClusterHandle) -> Result<Vec<Object>, CommandFailure> {
    let mut catalogs = cluster.list(&CLUSTER_CATALOG, None, None).await?;
    catalogs.retain(|catalog| !is_switched_off(catalog));
    Ok(catalogs)
}

/// Finds the ClusterCatalog that a PATH names.
///
/// # Errors
/// There is no such ClusterCatalog, or it cannot be read.
pub(super) async fn find(
    cluster: &impl ClusterHandle,
    argument: &str,
) -> Result<Object, CommandFailure> {
    let name = argument.split_once('/').map_or("", |(_, name)| name);
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
    if name.is_empty() || !name.bytes().all(is_name) {
        let message = format!("{} is no name of a ClusterCatalog", mainstay_gocompat::quote(name));
        let cause = Cause::new(message)
            .remedy("write clustercatalog/NAME, such as clustercatalog/operatorhubio");
        return Err(CommandFailure::usage(cause));
    }
    find_named(cluster, &CLUSTER_CATALOG, name, "kubectl get clustercatalogs").await
}

/// Reads the documents of a ClusterCatalog; if the catalog has the package, only those of the package.
///
/// # Errors
/// The catalog is not served, or its server does not respond or refuses.
pub(super) async fn read(
    cluster: &impl ClusterHandle,
    catalog: &Object,
    argument: &str,
    package: Option<&str>,
) -> Result<ServedContent, CommandFailure> {
    let files = read_files(cluster, catalog, package).await?;
    Ok(ServedContent {
        argument: argument.to_owned(),
        priority: catalog.i64(&["spec", "priority"]).unwrap_or_default(),
        files: files.into_iter().collect(),
    })
}

/// Reads the documents of a package from a ClusterCatalog, or all of them if it does not have the package.
///
/// # Errors
/// The catalog is not served, or its server does not respond or refuses.
pub async fn read_documents(
    cluster: &impl ClusterHandle,
    catalog: &Object,
    package: &str,
) -> Result<Vec<u8>, CommandFailure> {
    Ok(joined(read_files(cluster, catalog, Some(package)).await?))
}

/// Reads all documents of a ClusterCatalog.
///
/// # Errors
/// The catalog is not served, or its server does not respond or refuses.
pub(super) async fn read_all_documents(
    cluster: &impl ClusterHandle,
    catalog: &Object,
) -> Result<Vec<u8>, CommandFailure> {
    Ok(joined(read_files(cluster, catalog, None).await?))
}

/// The documents of files, one after another.
fn joined(files: Vec<(String, Vec<u8>)>) -> Vec<u8> {
    files.into_iter().flat_map(|(_, bytes)| bytes.into_iter().chain(*b"\n")).collect()
}

async fn read_files(
    cluster: &impl ClusterHandle,
    catalog: &Object,
    package: Option<&str>,
) -> Result<Vec<(String, Vec<u8>)>, CommandFailure> {
    let server = CatalogServer::of(cluster, catalog).await?;
    let failed = |error| CommandFailure::from(server.unreadable(catalog, error));
    let files = match package {
        Some(package) => server.package_documents(cluster, package).await.map_err(failed)?,
        None => PackageDocuments::Unknown,
    };
    match files {
        PackageDocuments::Found(files) => Ok(files),
        PackageDocuments::Absent | PackageDocuments::Unknown => {
            Ok(vec![server.get(cluster, ALL.to_owned()).await.map_err(failed)?])
        }
    }
}

/// Reads a package of a ClusterCatalog, as the controller of ClusterExtensions reads it.
pub async fn package_content(
    cluster: &impl ClusterHandle,
    catalog: &Object,
    package: &str,
) -> FetchedPackage {
    if !is_served(catalog) {
        return FetchedPackage::NotServed;
    }
    let server = match CatalogServer::of(cluster, catalog).await {
        Ok(server) => server,
        Err(failure) => return FetchedPackage::Unread(failure.cause),
    };
    let documents = async {
        match server.package_documents(cluster, package).await? {
            PackageDocuments::Found(files) => Ok(files),
            PackageDocuments::Absent => Ok(Vec::new()),
            PackageDocuments::Unknown => Ok(vec![server.get(cluster, ALL.to_owned()).await?]),
        }
    };
    let documents = match documents.await {
        Ok(documents) => joined(documents),
        Err(error) => return FetchedPackage::Unread(server.unreadable(catalog, error)),
    };
    match read_package(package, &documents) {
        Ok(content) => FetchedPackage::Read(content),
        Err(error) => {
            let package = mainstay_gocompat::quote(package);
            FetchedPackage::Invalid(format!("error loading package {package}: {error}"))
        }
    }
}

/// The documents of a package, as files.
enum PackageDocuments {
    Found(Vec<(String, Vec<u8>)>),
    /// The catalog does not have the package.
    Absent,
    /// The server offers only whole catalogs, as catalogd does without `APIV1MetasHandler`.
    Unknown,
}

/// The server of a ClusterCatalog.
struct CatalogServer {
    base: String,
    address: CatalogAddress,
    endpoint: CatalogEndpoint,
}

impl CatalogServer {
    /// The server that the status of a ClusterCatalog names.
    ///
    /// # Errors
    /// The catalog is not served, or the CA of its server is unknown.
    async fn of(cluster: &impl ClusterHandle, catalog: &Object) -> Result<Self, CommandFailure> {
        let base = base_url(catalog).map_err(CommandFailure::usage)?;
        let address = CatalogAddress::parse(base).ok_or_else(|| {
            Cause::new(format!(
                "the address of ClusterCatalog {} is no HTTPS URL: {}",
                catalog.name(),
                escape_controls(base)
            ))
            .remedy(see_more(catalog))
        })?;
        let endpoint = match &address {
            CatalogAddress::Host { .. } => CatalogEndpoint::Direct {
                base: base.to_owned(),
                authorities: authorities(cluster).await?,
            },
            CatalogAddress::Service { .. } => {
                CatalogEndpoint::ServiceProxy { path: address.proxy_path() }
            }
        };
        Ok(Self { base: base.to_owned(), address, endpoint })
    }

    async fn get(
        &self,
        cluster: &impl ClusterHandle,
        path: String,
    ) -> Result<(String, Vec<u8>), CatalogReadError> {
        let bytes = cluster.read_cluster_catalog(&self.endpoint, &path).await?;
        Ok((path, bytes))
    }

    /// Reads the documents of a package.
    async fn package_documents(
        &self,
        cluster: &impl ClusterHandle,
        package: &str,
    ) -> Result<PackageDocuments, CatalogReadError> {
        let package = query_value(package);
        let path = format!("api/v1/metas?schema=olm.package&name={package}");
        let own = match self.get(cluster, path).await {
            Ok(own) if !own.1.trim_ascii().is_empty() => own,
            Ok(_) => return Ok(PackageDocuments::Absent),
            Err(CatalogReadError::NotFound(_)) => return Ok(PackageDocuments::Unknown),
            Err(error) => return Err(error),
        };
        let rest = self.get(cluster, format!("api/v1/metas?package={package}")).await?;
        Ok(PackageDocuments::Found(vec![own, rest]))
    }

    fn unreadable(&self, catalog: &Object, error: CatalogReadError) -> Cause {
        unreadable(catalog, &self.base, &self.address, error)
    }
}

/// A text as the value of a query parameter.
fn query_value(text: &str) -> String {
    let mut value = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            value.push(char::from(byte));
        } else {
            // Writing to a String does not fail.
            let _ = write!(value, "%{byte:02X}");
        }
    }
    value
}

/// Whether a ClusterCatalog is switched on and served.
pub(super) fn is_served(catalog: &Object) -> bool {
    !is_switched_off(catalog) && catalog.condition("Serving") == Some("True")
}

fn is_switched_off(catalog: &Object) -> bool {
    catalog.str(&["spec", "availabilityMode"]) == Some("Unavailable")
}

/// The URL at which a ClusterCatalog is served.
fn base_url(catalog: &Object) -> Result<&str, Cause> {
    let name = catalog.name();
    if is_switched_off(catalog) {
        let command = "kubectl patch clustercatalog";
        let patch = r#"--type merge -p '{"spec":{"availabilityMode":"Available"}}'"#;
        return Err(Cause::new(format!("ClusterCatalog {name} is switched off"))
            .because(Cause::new("its spec.availabilityMode is Unavailable"))
            .remedy(format!("switch it on with: {command} {name} {patch}")));
    }
    let conditions = catalog.array(&["status", "conditions"]);
    let is_serving = conditions
        .iter()
        .any(|condition| condition["type"] == "Serving" && condition["status"] == "True");
    match catalog.str(&["status", "urls", "base"]) {
        Some(base) if is_serving => Ok(base),
        _ => Err(not_serving(catalog)),
    }
}

/// The error of a ClusterCatalog that is not served, with its conditions.
fn not_serving(catalog: &Object) -> Cause {
    let conditions = catalog.array(&["status", "conditions"]).iter().map(|condition| {
        let text = |field: &str| escape_controls(condition[field].as_str().unwrap_or_default());
        let [kind, status, reason, message] = ["type", "status", "reason", "message"].map(text);
        let state = format!("{kind} is {status} ({reason})");
        Cause::new(if message.is_empty() { state } else { format!("{state}: {message}") })
    });
    let mut causes: Vec<Cause> = conditions.collect();
    let mut cause = Cause::new(format!("ClusterCatalog {} is not served", catalog.name()));
    if causes.is_empty() {
        causes.push(Cause::new("no controller has reported its state"));
        cause = cause.remedy("start the controllers with: mainstay run");
    }
    cause.because_all(causes).remedy(see_more(catalog))
}

/// The remedy that shows the conditions and Events of a ClusterCatalog.
fn see_more(catalog: &Object) -> String {
    format!("see more with: kubectl describe clustercatalog {}", catalog.name())
}

/// The address of a catalog.
#[derive(Debug, PartialEq, Eq)]
enum CatalogAddress {
    /// A server that this machine may reach.
    Host { is_loopback: bool },
    /// A Service, which has an address in its cluster only.
    Service { name: String, namespace: String, port: u16, path: String },
}

impl CatalogAddress {
    fn parse(base: &str) -> Option<Self> {
        let uri: Uri = base.parse().ok()?;
        if uri.scheme_str() != Some("https") {
            return None;
        }
        let host = uri.host()?;
        let labels: Vec<&str> = host.split('.').collect();
        let is_label = |label: &str| {
            !label.is_empty()
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        };
        Some(match labels.as_slice() {
            // The domain of the cluster may follow.
            [name, namespace, "svc", ..] if is_label(name) && is_label(namespace) => {
                Self::Service {
                    name: (*name).to_owned(),
                    namespace: (*namespace).to_owned(),
                    port: uri.port_u16().unwrap_or(443),
                    path: uri.path().trim_end_matches('/').to_owned(),
                }
            }
            _ => {
                let address = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
                let is_loopback =
                    host == "localhost" || address.is_ok_and(|address| address.is_loopback());
                Self::Host { is_loopback }
            }
        })
    }

    /// The path of a Service's catalog at the API server.
    fn proxy_path(&self) -> String {
        match self {
            Self::Host { .. } => String::new(),
            Self::Service { name, namespace, port, path } => {
                format!("/api/v1/namespaces/{namespace}/services/https:{name}:{port}/proxy{path}")
            }
        }
    }
}

/// The CAs of the catalog server. The cluster may have the namespace of either profile, or both.
async fn authorities(cluster: &impl ClusterHandle) -> Result<String, CommandFailure> {
    let namespaces = [Profile::Standard, Profile::Openshift].map(Profile::catalogd_namespace);
    let mut authorities = String::new();
    let mut failure = None;
    for namespace in namespaces {
        match cluster.get(&builtin::CONFIG_MAP, Some(namespace), CA_CONFIG_MAP).await {
            Ok(found) => {
                let found = found.as_ref().and_then(|object| object.str(&["data", CA_KEY]));
                authorities.extend(found.map(|pem| format!("{pem}\n")));
            }
            Err(error) => failure = Some(Cause::from(error)),
        }
    }
    if !authorities.is_empty() {
        return Ok(authorities);
    }
    let cause = Cause::new("the CA of the catalog server is unknown");
    let why = failure.unwrap_or_else(|| {
        let [first, second] = namespaces;
        Cause::new(format!(
            "no ConfigMap {CA_CONFIG_MAP} with the key {CA_KEY} is in namespace {first} or {second}"
        ))
    });
    let remedy = "start the controllers, which create it: mainstay run";
    Err(cause.because(why).remedy(remedy).into())
}

/// The error of a ClusterCatalog whose server does not send its documents.
fn unreadable(
    catalog: &Object,
    base: &str,
    address: &CatalogAddress,
    error: CatalogReadError,
) -> Cause {
    let (why, remedy) = match (error, address) {
        (CatalogReadError::NotFound(why), _) => (why, see_more(catalog)),
        (CatalogReadError::Forbidden(why), CatalogAddress::Service { namespace, .. }) => {
            let right = format!("kubectl auth can-i get services/proxy -n {namespace}");
            (why, format!("use an account for which this prints yes: {right}"))
        }
        (CatalogReadError::Certificate(why), _) => {
            let remedy = format!(
                "compare its CA with the ConfigMap: kubectl get configmaps -A --field-selector metadata.name={CA_CONFIG_MAP} -o yaml"
            );
            (why, remedy)
        }
        (CatalogReadError::Unreachable(why), CatalogAddress::Service { name, namespace, .. }) => {
            let list = format!("kubectl -n {namespace} get endpointslices");
            let label = format!("-l kubernetes.io/service-name={name}");
            (why, format!("see whether a pod serves the catalogs: {list} {label}"))
        }
        (CatalogReadError::Unreachable(why), CatalogAddress::Host { is_loopback: true }) => {
            let remedy =
                "use the machine on which `mainstay up` or `mainstay run` runs, or start it";
            (why, remedy.to_owned())
        }
        (
            CatalogReadError::Unreachable(why)
            | CatalogReadError::Forbidden(why)
            | CatalogReadError::Failed(why),
            _,
        ) => (why, "try again, or allow more time with --timeout SECONDS".to_owned()),
    };
    let message =
        format!("ClusterCatalog {} cannot be read from {}", catalog.name(), escape_controls(base));
    Cause::new(message).because(why).remedy(remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn catalog_of_a_service_is_read_through_the_service_proxy() {
        for (base, path) in [
            (
                "https://catalogd-service.olmv1-system.svc/catalogs/demo",
                "/api/v1/namespaces/olmv1-system/services/https:catalogd-service:443/proxy/catalogs/demo",
            ),
            (
                "https://c.openshift-catalogd.svc.cluster.local:8443/catalogs/demo/",
                "/api/v1/namespaces/openshift-catalogd/services/https:c:8443/proxy/catalogs/demo",
            ),
        ] {
            let address = CatalogAddress::parse(base).unwrap();
            assert_eq!(address.proxy_path(), path);
        }
    }

    #[test]
    fn catalog_of_another_host_is_read_from_its_server() {
        for (base, is_loopback) in [
            ("https://127.0.0.1:41037/catalogs/demo", true),
            ("https://[::1]:41037/catalogs/demo", true),
            ("https://localhost/catalogs/demo", true),
            ("https://catalogs.example.com/catalogs/demo", false),
            ("https://svc/catalogs/demo", false),
        ] {
            assert_eq!(CatalogAddress::parse(base), Some(CatalogAddress::Host { is_loopback }));
        }
        for base in ["", "http://127.0.0.1/catalogs/demo", "ftp://a.b.svc", "/catalogs/demo"] {
            assert_eq!(CatalogAddress::parse(base), None, "{base}");
        }
    }

    #[test]
    fn package_name_is_escaped_in_a_query() {
        assert_eq!(query_value("a-b.c_d"), "a-b.c_d");
        assert_eq!(query_value("a&name=b ü"), "a%26name%3Db%20%C3%BC");
    }
}
