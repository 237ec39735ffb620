//! Where catalogs are served: in this process, or in pods.

/// Where catalogs by image and in `ConfigMaps` are served.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CatalogMode {
    /// In this process, which reads them.
    #[default]
    InProcess,
    /// In pods, which this process makes and asks, as the original does.
    Pods,
    /// In this process, and in pods what it cannot read, such as images with a server of their own.
    Auto,
}

/// How catalogs run as pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogPods {
    /// When they do.
    pub mode: CatalogMode,
    /// The image that serves `ConfigMaps`.
    pub config_map_image: String,
    /// The image that serves content that was copied out of a catalog's image.
    pub opm_image: String,
    /// The image with the program that copies it.
    pub util_image: String,
    /// Whether restricted pods leave it to the cluster as which user they run.
    pub any_user: bool,
    /// Whether pods run nowhere, as on simulated nodes: what a pod would serve is then read from where
    /// it has that, instead of from the pod.
    pub simulated: bool,
}

impl Default for CatalogPods {
    /// No pods; the images are those of the original.
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
