//! Default CatalogSources: an option of classic that the OperatorHub controller applies.

use mainstay_api::{ApiKind as _, CatalogSource, ObjectDecodeError};
use mainstay_catalogsources::FolderCatalog;
use mainstay_object::Object;

/// The manifests of the default CatalogSources.
#[derive(Clone, Debug, Default)]
pub struct DefaultSources(Vec<CatalogSource>);

impl DefaultSources {
    /// Reads manifests of CatalogSources. Their namespace is ignored: they are created in the
    /// namespace whose catalogs every namespace sees.
    ///
    /// # Errors
    /// If a manifest is not a valid CatalogSource.
    pub fn new(manifests: &[Object]) -> Result<Self, ObjectDecodeError> {
        manifests.iter().map(CatalogSource::from_object).collect::<Result<_, _>>().map(Self)
    }

    /// The CatalogSources in a namespace, without those that a catalog in a folder replaces.
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
