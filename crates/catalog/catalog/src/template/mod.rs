//! Catalog templates: short documents from which catalogs are rendered.
//!
//! | Kind | Input | Output |
//! |---|---|---|
//! | [`TemplateKind::Basic`] | documents of a catalog, bundles only by their image | the same with complete bundles |
//! | [`TemplateKind::Semver`] | images of bundles for the channels candidate, fast and stable | a package whose channels and updates follow from the versions |
//! | [`TemplateKind::Substitutes`] | documents of a catalog, and bundles that substitute others | the same with the substitutes in the channels |
//!
//! As in upstream, the output is not checked to be a catalog, except for substitutes templates. The
//! caller pulls images ([`TemplateKind::render`]). Errors are in upstream's words.

mod basic;
mod convert;
mod error;
mod input;
mod semver;
mod substitutes;

pub use convert::convert;
pub use error::{
    BundleReleaseError, DeclareError, SemverError, SubstitutesError, SubstitutionError,
    SubstitutionRole, TemplateConvertError, TemplateDecodeError, TemplateError, TemplateKindError,
    TemplateReadError, TemplateUnmarshalError, VersionsError,
};

use crate::{Rendition, content::BlobOrigin, shape};
use mainstay_bundle::DeclaredBundle;
use mainstay_gocompat::values::json_kind;
use mainstay_schema::gojson::{DeclaredStruct, DeclaredType};
use serde_json::Value;

/// The content of a bundle image.
#[derive(Clone, Debug)]
pub struct ImageBundle {
    /// The document of the bundle for a catalog.
    pub bundle: DeclaredBundle,
    /// The complete ClusterServiceVersion.
    pub csv: Value,
}

/// The kinds of templates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TemplateKind {
    /// `olm.template.basic`
    Basic,
    /// `olm.semver`
    Semver,
    /// `olm.template.substitutes`
    Substitutes,
}

impl TemplateKind {
    /// All kinds, by name.
    pub const ALL: [Self; 3] = [Self::Basic, Self::Semver, Self::Substitutes];

    /// The `schema` of templates of this kind.
    pub const fn schema(self) -> &'static str {
        match self {
            Self::Basic => "olm.template.basic",
            Self::Semver => "olm.semver",
            Self::Substitutes => "olm.template.substitutes",
        }
    }

    /// The name: the last word of the schema.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Basic => "basic",
            Self::Semver => "semver",
            Self::Substitutes => "substitutes",
        }
    }

    /// The kind of a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The kind of a template by the schema of its first document.
    ///
    /// # Errors
    /// If the document cannot be read, or has no schema or an unknown one.
    pub fn of(text: &[u8]) -> Result<Self, TemplateKindError> {
        let fields = match input::first(text)?.value {
            Value::Object(fields) => fields,
            Value::Null => return Err(TemplateUnmarshalError::Nothing.into()),
            other => {
                let (found, expected) = (json_kind(&other), HEAD.spelled);
                return Err(TemplateUnmarshalError::NoObject { found, expected }.into());
            }
        };
        shape::check_fields(&fields, &HEAD, false).map_err(TemplateUnmarshalError::Shape)?;
        match input::text(&fields, "schema") {
            "" => Err(TemplateKindError::NoSchema),
            schema => Self::ALL
                .into_iter()
                .find(|kind| kind.schema() == schema)
                .ok_or_else(|| TemplateKindError::UnknownSchema { schema: schema.to_owned() }),
        }
    }

    /// Renders the first document of a text. `images` pulls the bundle of an image reference: each
    /// image once, in the order of the text.
    ///
    /// # Errors
    /// The first error of the template or of its result, and errors of `images`.
    pub async fn render<E>(
        self,
        text: &[u8],
        images: &mut impl AsyncFnMut(&str) -> Result<ImageBundle, E>,
    ) -> Result<Rendition, TemplateError<E>> {
        match self {
            Self::Basic => basic::render(text, images).await,
            Self::Semver => semver::render(text, images).await,
            Self::Substitutes => {
                let rendered = substitutes::render(text, images).await;
                rendered.map_err(|error| TemplateError::Substitutes(Box::new(error)))
            }
        }
    }
}

static HEAD: DeclaredStruct = DeclaredStruct {
    name: "",
    spelled: "struct { Schema string \"json:\\\"schema\\\"\" }",
    fields: &[("schema", DeclaredType::Text)],
};

/// The origin of a document that comes from the entry at `index` (from 0) of a template.
fn origin(index: usize) -> BlobOrigin {
    BlobOrigin { file: "entries".into(), line: index + 1 }
}
