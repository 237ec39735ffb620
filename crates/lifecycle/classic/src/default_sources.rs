//! Definitions of the catalogs that a cluster has by default: an option of classic, which the controller
//! of the `OperatorHub` carries out.

use mainstay_api::{CatalogSource, DecodeError, Kind as _};
use mainstay_catalogsources::FolderCatalog;
use mainstay_object::Object;

/// Definitions of default catalogs.
#[derive(Clone, Debug, Default)]
pub struct DefaultSources(Vec<CatalogSource>);

impl DefaultSources {
    /// Reads definitions: manifests of `CatalogSources`. Where they are does not matter: they are
    /// kept in the namespace whose catalogs are visible everywhere.
    ///
    /// # Errors
    /// A manifest is not of the shape of a CatalogSource.
    pub fn new(manifests: &[Object]) -> Result<Self, DecodeError> {
        manifests.iter().map(CatalogSource::from_object).collect::<Result<_, _>>().map(Self)
    }

    /// Those in a namespace, without those whose place a catalog in a folder takes.
    pub(crate) fn within(
        mut self,
        namespace: &str,
        folders: &[FolderCatalog],
    ) -> Vec<CatalogSource> {
        self.0.retain(|default| {
            let takes_place = |folder: &FolderCatalog| {
                folder.namespace == namespace && folder.name == default.metadata.name
            };
            !folders.iter().any(takes_place)
        });
        for source in &mut self.0 {
            namespace.clone_into(&mut source.metadata.namespace);
            source.api_version = CatalogSource::RESOURCE.api_version();
            source.kind = CatalogSource::RESOURCE.kind.to_string();
        }
        self.0
    }
}
