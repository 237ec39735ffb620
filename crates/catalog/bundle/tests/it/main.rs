//! Integration tests of the bundle crate.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod bundle;
mod opm_render;
mod recorded_manifests;
mod renderer;
mod renderer_rules;
mod unknown_fields;
mod validators;

use mainstay_bundle::{Bundle, BundleImage, DeclaredBundle, FileTree, ImageTemplate, Limits};
use mainstay_catalog::{CatalogFormat, Rendition};

/// The flags of `opm render`.
#[derive(Default)]
struct Flags<'a> {
    yaml: bool,
    migrate: bool,
    template: Option<&'a str>,
}

/// The output of `opm render` for bundles, or its error.
fn render(bundles: &[(&dyn FileTree, &str)], flags: &Flags<'_>) -> Result<String, String> {
    let declared: Vec<DeclaredBundle> =
        bundles.iter().map(|(tree, name)| declare(*tree, name, flags)).collect::<Result<_, _>>()?;
    let mut out = Vec::new();
    let mut rendition = Rendition::default();
    for bundle in &declared {
        rendition.add(bundle);
    }
    let format = if flags.yaml { CatalogFormat::Yaml } else { CatalogFormat::Json };
    rendition.write(format, &mut out).unwrap();
    Ok(String::from_utf8(out).unwrap())
}

fn declare(tree: &dyn FileTree, name: &str, flags: &Flags<'_>) -> Result<DeclaredBundle, String> {
    let template = match flags.template {
        None => None,
        Some(text) => Some(
            ImageTemplate::parse(text)
                .map_err(|why| format!("invalid image reference template: {why}"))?,
        ),
    };
    let declared = Bundle::read_from(tree, &Limits::default()).and_then(|bundle| {
        let image = template.as_ref().map_or(BundleImage::None, BundleImage::Template);
        let mut declared = bundle.declare(image, name)?;
        if flags.migrate {
            bundle.migrate(&mut declared).map_err(|error| error.with_prefix("migrate: "))?;
        }
        Ok(declared)
    });
    declared.map_err(|error| {
        let upstream = error.upstream();
        if upstream.starts_with("migrate: ") {
            upstream.to_owned()
        } else {
            format!("render reference \"{name}\": {upstream}")
        }
    })
}
