//! Documents of a catalog image as catalogd of OLM v1 reads them.
//!
//! Only the label for a folder of files names the catalog; what the image does not have there is no
//! error but an empty catalog. Nothing is checked but the form of each document.

use crate::content::within;
use crate::place::CONFIGS_LABEL;
use crate::{PulledImage, Puller};
use mainstay_catalog::{
    CatalogDocuments, DocumentRules, FolderSource, KeptContent, LoadError, LoadOptions,
};
use mainstay_image::unpack::UnpackError;

/// Why an image has no documents to serve.
#[derive(Debug, thiserror::Error)]
pub enum DocumentsError {
    /// The image lacks the label.
    #[error("catalog image is missing the required label \"{CONFIGS_LABEL}\"")]
    NoLabel,
    /// The layers cannot be unpacked.
    #[error(transparent)]
    Unpack(UnpackError),
    /// A file cannot be read.
    #[error("{}", .0.upstream())]
    Read(LoadError),
}

impl Puller {
    /// Reads the documents in the catalog folder of an image. Blocks, and uses much CPU.
    ///
    /// # Errors
    /// Why it has none.
    pub fn documents(&self, image: &PulledImage) -> Result<CatalogDocuments, DocumentsError> {
        let label = image.config.config.labels.get(CONFIGS_LABEL).ok_or(DocumentsError::NoLabel)?;
        // The root stands for the whole image.
        let only = Some(within(label)).filter(|place| !place.is_empty());
        let unpacked =
            self.unpack(image, only.into_iter().collect()).map_err(DocumentsError::Unpack)?;
        let (keep, rules) = (KeptContent::Light, DocumentRules::Meta);
        let options = LoadOptions { keep, rules, ..LoadOptions::default() };
        let files = FolderSource::new(unpacked.path());
        CatalogDocuments::read(&files, &options).map_err(DocumentsError::Read)
    }
}
