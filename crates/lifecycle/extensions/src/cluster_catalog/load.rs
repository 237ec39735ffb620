//! Loading: from the spec of a catalog to stored content.

use super::content::{CatalogContent, Documents};
use super::failure::LoadFailure;
use crate::context::Context;
use crate::image_texts::has_tag;
use mainstay_api::{ClusterCatalog, ClusterCatalogSourceType};
use mainstay_image::digest::Digest;
use mainstay_image::reference::ImageReference;
use mainstay_images::StepwisePull;
use mainstay_registry::{ServedCatalog, ServedDocuments, stored};
use std::sync::Arc;

/// Loaded content.
#[derive(Debug)]
pub(super) struct Loaded {
    /// The content.
    pub(super) content: CatalogContent,
    /// The image reference with its digest.
    pub(super) resolved: String,
}

/// The image reference of a catalog.
pub(super) fn reference(catalog: &ClusterCatalog) -> Result<ImageReference, LoadFailure> {
    let source = &catalog.spec.source;
    if source.kind != ClusterCatalogSourceType::Image {
        return Err(LoadFailure::UnknownSource { kind: source.kind.to_string() });
    }
    let Some(image) = &source.image else {
        return Err(LoadFailure::NoImage { name: catalog.metadata.name.clone() });
    };
    let text = &image.reference;
    let reference = ImageReference::parse_canonical(text).map_err(|error| {
        LoadFailure::Reference { reference: text.clone(), why: error.to_string() }
    })?;
    if has_tag(text) && reference.digest().is_some() {
        return Err(LoadFailure::TagAndDigest);
    }
    Ok(reference)
}

/// Resolves the image of a catalog, and opens or creates its content. Nothing is pulled or parsed if
/// the content of the digest is stored already.
pub(super) async fn load(
    context: &Arc<Context>,
    catalog: &ClusterCatalog,
) -> Result<Loaded, LoadFailure> {
    let reference = reference(catalog)?;
    if let Some(folder) = folder(context, catalog) {
        let content = folder_content(&folder)?;
        let resolved = format!("{}@{}", reference.repository(), content.digest);
        return Ok(Loaded { content, resolved });
    }
    if let Some(name) = folder_name(&reference) {
        return Err(LoadFailure::UnknownFolder { name });
    }
    let pull = context.puller.begin(&reference, &context.requester);
    let digest = pull.resolve().await.map_err(LoadFailure::Pull)?;
    let resolved = format!("{}@{digest}", reference.repository());
    let by_digest = reference.digest().is_some();
    let content = content_of(context, &pull, digest, by_digest).await?;
    Ok(Loaded { content, resolved })
}

/// Opens or creates the content of the image that a status names.
pub(super) async fn load_resolved(
    context: &Arc<Context>,
    reference: &ImageReference,
    digest: Digest,
) -> Result<CatalogContent, LoadFailure> {
    let pull = context.puller.begin(reference, &context.requester);
    content_of(context, &pull, digest, true).await
}

/// Opens or creates the content of an image.
async fn content_of(
    context: &Arc<Context>,
    pull: &StepwisePull<'_>,
    digest: Digest,
    by_digest: bool,
) -> Result<CatalogContent, LoadFailure> {
    let content = |digest: Digest, stored| {
        let documents = Documents::Stored(stored);
        CatalogContent { digest, documents }
    };
    if let Some(stored) = open(context, &digest).await {
        return Ok(content(digest, stored));
    }
    let image = pull.fetch(&digest).await.map_err(LoadFailure::Pull)?;
    // Never closed, so there is always a permit.
    let _permit = context.contents.creating.acquire().await;
    // Another catalog may have created the same content meanwhile.
    if let Some(stored) = open(context, &digest).await {
        return Ok(content(digest, stored));
    }
    let folder = context.contents.subfolder(&digest);
    let (puller, modified) = (context.puller.clone(), context.clock.now().into());
    let create = move || {
        let documents = puller
            .documents(&image)
            .map_err(|error| LoadFailure::Documents { error, by_digest })?;
        stored::create(&folder, documents.blobs(), modified).map_err(LoadFailure::Store)
    };
    let stored = mainstay_images::blocking(create, LoadFailure::Ended).await?;
    Ok(content(digest, Arc::new(stored)))
}

/// The folder behind a catalog, if its reference is that of the folder with its name.
pub(super) fn folder(context: &Context, catalog: &ClusterCatalog) -> Option<Arc<ServedCatalog>> {
    let name = catalog.metadata.name.as_str();
    let reference = &catalog.spec.source.image.as_ref()?.reference;
    (*reference == folder_reference(name)).then(|| context.folders.get(name).cloned()).flatten()
}

/// The host in references of catalog folders. No registry can have it.
const FOLDER_HOST: &str = "folder.mainstay.invalid";

/// The image reference of a ClusterCatalog whose content is that of a catalog folder with its name.
pub fn folder_reference(name: &str) -> String {
    format!("{FOLDER_HOST}/{name}:folder")
}

/// The name of the catalog folder that a reference names, if it names one.
fn folder_name(reference: &ImageReference) -> Option<String> {
    (reference.domain() == FOLDER_HOST).then(|| reference.path().to_owned())
}

/// Whether the folder behind a catalog is being read for the first time. Its change enqueues the catalog.
pub(super) fn is_being_read(context: &Context, catalog: &ClusterCatalog) -> bool {
    folder(context, catalog).is_some_and(|folder| {
        let state = folder.state();
        state.index.is_none() && state.problem.is_none()
    })
}

/// Takes the content that a catalog folder has now.
pub(super) fn folder_content(folder: &ServedCatalog) -> Result<CatalogContent, LoadFailure> {
    let state = folder.state();
    let Some(index) = &state.index else {
        let why = state.problem.as_deref().unwrap_or("the folder is being read");
        return Err(LoadFailure::Folder { why: why.to_owned() });
    };
    let digest = index.catalog().digest().parse::<Digest>();
    let digest = digest.map_err(|error| LoadFailure::Folder { why: error.to_string() })?;
    Ok(CatalogContent { digest, documents: Documents::Folder(Arc::clone(index)) })
}

/// Opens the content of a digest, if it is stored.
pub(super) async fn open(context: &Arc<Context>, digest: &Digest) -> Option<Arc<ServedDocuments>> {
    let (shared, digest) = (Arc::clone(context), digest.clone());
    tokio::task::spawn_blocking(move || shared.contents.open(&digest)).await.ok().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_api::{ClusterCatalog, ImageSource};

    fn catalog(reference: &str) -> ClusterCatalog {
        let mut catalog = ClusterCatalog::new("", "a");
        catalog.spec.source.kind = ClusterCatalogSourceType::Image;
        let image = ImageSource { reference: reference.to_owned(), ..ImageSource::default() };
        catalog.spec.source.image = Some(image);
        catalog
    }

    #[test]
    fn references_have_a_tag_or_a_digest_and_not_both() {
        let digest = "@sha256:1212121212121212121212121212121212121212121212121212121212121212";
        for (text, expected) in [
            ("a.example:5000/b:v1".to_owned(), None),
            (format!("a.example:5000/b{digest}"), None),
            (format!("a.example/b:v1{digest}"), Some("both a tag and digest")),
            ("https://a.example/b:v1".to_owned(), Some("error parsing image reference")),
        ] {
            let failure = reference(&catalog(&text)).err();
            assert!(failure.as_ref().is_none_or(LoadFailure::is_terminal), "{text}");
            let message = failure.map(|failure| failure.to_string());
            match expected {
                None => assert_eq!(message, None, "{text}"),
                Some(part) => assert!(message.is_some_and(|text| text.contains(part)), "{text}"),
            }
        }
    }

    #[test]
    fn source_without_an_image_is_blocked() {
        let mut catalog = catalog("a.example/b:v1");
        catalog.spec.source.image = None;
        let failure = reference(&catalog).unwrap_err();
        // shows OLMV1-119
        assert_eq!(
            failure.to_string(),
            "source catalog content: terminal error: error parsing ClusterCatalog \"a\", image source is nil"
        );
        assert!(failure.is_terminal());
    }
}
