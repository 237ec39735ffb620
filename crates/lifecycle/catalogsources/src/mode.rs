//! Catalog modes: catalogs are served in this process or in pods.

/// Where catalogs in images and ConfigMaps are served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CatalogMode {
    /// This process reads the catalogs.
    #[default]
    InProcess,
    /// As in upstream, the controller creates a pod for each catalog and reads the catalog from it.
    Pods,
    /// In this process; images that it cannot read, such as images with their own registry server,
    /// in pods.
    Auto,
}

/// How catalogs run as pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogPods {
    /// Which catalogs run as pods.
    pub mode: CatalogMode,
    /// The image of the registry server for ConfigMaps.
    pub config_map_image: String,
    /// The image of the registry server for content that was extracted from a catalog image.
    pub opm_image: String,
    /// The image with the program that extracts the content.
    pub util_image: String,
    /// Whether restricted pods have no `runAsUser`, so that the cluster chooses the user.
    pub any_user: bool,
    /// Whether nodes are simulated, so that pods run no process. The store then reads the content
    /// of a pod from its ConfigMaps or image instead of over gRPC.
    pub simulated: bool,
}

impl Default for CatalogPods {
    /// No pods; the images are upstream's.
    fn default() -> Self {
        let image = |name: &str| format!("quay.io/operator-framework/{name}:latest");
        Self {
            mode: CatalogMode::default(),
            config_map_image: image("configmap-operator-registry"),
            opm_image: image("opm"),
            util_image: image("olm"),
            any_user: false,
            simulated: false,
        }
    }
}
