//! Extensions on published catalogs, where they are at hand.

use mainstay_catalog::{Catalog, Keep, LoadOptions};
use mainstay_resolver::extension::{
    self, Choice, Content, Failure, FailureKind, Installed, Offer, Request,
};
use mainstay_updates::Semantics;
use mainstay_version::VersionRelease;

const CATALOGS: [&str; 2] = ["catalog-certified-v4.14", "catalog-community-v4.19"];

/// What an extension with that bundle gets.
fn next(
    catalog: &Catalog,
    package: &str,
    channels: &[&str],
    installed: Option<&Installed>,
) -> Result<Choice, Box<Failure>> {
    let request = Request {
        package: package.to_owned(),
        channels: channels.iter().map(|&it| it.to_owned()).collect(),
        ..Request::default()
    };
    let catalogs = [extension::Catalog::new("c", Content::Ready(catalog))];
    extension::resolve(&request, installed, &catalogs)
}

/// Where updates go from every bundle is what the update graph says, and whoever gets nothing gets
/// nothing because the bundle asks for other operators.
#[test]
fn updates_go_where_the_graph_says() {
    for name in CATALOGS {
        let Some(folder) = mainstay_testdata::unpack(name, "extensions on a published catalog")
        else {
            continue;
        };
        let options = LoadOptions { keep: Keep::Facts, ..LoadOptions::default() };
        let catalog = Catalog::load(folder.path(), &options).unwrap();
        let (mut asked, mut chosen) = (0, 0);
        for package in catalog.packages() {
            let offer = Offer::of(package);
            let view = offer.graph().view(Semantics::Extension, &[]).unwrap();
            for bundle in package.bundles() {
                let installed = Installed {
                    name: bundle.name.to_string(),
                    version: bundle.version.to_string(),
                    release: None,
                };
                let known = offer.graph().bundle(&bundle.name).unwrap();
                let expected = view.next(&known.into()).map(|step| step.bundle.name.clone());
                let expected = expected.unwrap_or_else(|| bundle.name.clone());
                asked += 1;
                match next(&catalog, &package.name, &[], Some(&installed)) {
                    Ok(choice) => {
                        assert_eq!(choice.bundle, expected, "{} {}", package.name, bundle.name);
                        let version = VersionRelease::legacy(&choice.version.to_string());
                        assert_eq!(version.unwrap(), choice.version);
                        chosen += 1;
                    }
                    Err(failure) => {
                        assert_eq!(failure.kind, FailureKind::Dependency, "{}", failure.message);
                        assert!(failure.message.contains(&*expected), "{}", failure.message);
                    }
                }
            }
        }
        assert!(chosen * 2 > asked, "{chosen} of {asked}");
        mainstay_testdata::ran(name);
    }
}
