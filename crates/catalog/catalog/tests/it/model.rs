//! The index of a sound catalog.

use crate::{SOUND, load};
use mainstay_catalog::{
    BlobError, BlobOrigin, BundleApi, Catalog, CatalogDocuments, KeptContent, LoadOptions,
    MemorySource, RelatedImage,
};

#[test]
fn packages_channels_entries_and_bundles_are_indexed() {
    let catalog = load(&[("kiwi/catalog.yaml", SOUND)]).unwrap();
    let package = catalog.package("kiwi").unwrap();
    assert_eq!(&*package.default_channel, "stable");
    assert_eq!(package.description().unwrap(), "A bird.\n");
    let icon = package.icon().unwrap().unwrap();
    assert_eq!((icon.base64data.as_str(), icon.mediatype.as_str()), ("PHN2Zy8+", "image/svg+xml"));
    assert_eq!(package.deprecation.as_deref(), Some("kiwis are gone"));
    let channels: Vec<&str> = package.channels().map(|channel| &*channel.name).collect();
    assert_eq!(channels, ["beta", "stable"]);
    let stable = package.channel("stable").unwrap();
    assert_eq!(&*stable.head().name, "kiwi.v1.1.0");
    assert_eq!(stable.head().replaces.as_deref(), Some("kiwi.v1.0.0"));
    assert_eq!(stable.head().skip_range.as_deref(), Some(">=1.0.0 <1.1.0"));
    assert!(stable.is_skipped("kiwi.v1.0.1") && !stable.is_skipped("kiwi.v1.0.0"));
    assert_eq!(stable.entry("kiwi.v1.0.0").unwrap().replaces, None);
    assert_eq!(package.channel("beta").unwrap().deprecation.as_deref(), Some("beta ends"));
    let versions: Vec<String> =
        package.bundles().map(|bundle| bundle.version.to_string()).collect();
    assert_eq!(versions, ["1.0.0", "1.1.0", "1.2.0"]);
    let old = catalog.bundle("kiwi", "kiwi.v1.0.0").unwrap();
    assert_eq!(old.deprecation.as_deref(), Some("use 1.1"));
    assert_eq!(old.blob().origin().to_string(), "kiwi/catalog.yaml:29");
    assert!(catalog.package("mango").is_none() && catalog.bundle("kiwi", "x").is_none());
}

#[test]
fn small_properties_are_stored_and_large_ones_decoded_on_demand() {
    let catalog = load(&[("c.yaml", SOUND)]).unwrap();
    let bundle = catalog.bundle("kiwi", "kiwi.v1.1.0").unwrap();
    let kinds: Vec<&str> = bundle.properties.iter().map(|property| &*property.kind).collect();
    assert_eq!(kinds, ["olm.gvk", "olm.gvk.required", "olm.package.required", "olm.package"]);
    let api = |group: &str, kind: &str| BundleApi {
        group: group.to_owned(),
        version: "v1".to_owned(),
        kind: kind.to_owned(),
    };
    assert_eq!(bundle.provided_apis().collect::<Vec<_>>(), [api("birds.example.com", "Kiwi")]);
    assert_eq!(bundle.required_apis().collect::<Vec<_>>(), [api("trees.example.com", "Fern")]);
    let required = bundle.required_packages().next().unwrap();
    assert_eq!((&*required.package_name, &*required.version_range), ("fern", ">=1.0.0"));
    assert_eq!(bundle.object_count(), 2);
    let kinds: Vec<String> =
        bundle.objects().unwrap().iter().map(|object| object.kind().to_owned()).collect();
    assert_eq!(kinds, ["Service", "ClusterServiceVersion"]);
    assert_eq!(bundle.csv().unwrap().unwrap().name(), "kiwi.v1.1.0");
    let image = RelatedImage {
        name: "operator".to_owned(),
        image: "example.com/kiwi/operator:v1.1.0".to_owned(),
    };
    assert_eq!(bundle.related_images().unwrap(), [image]);
    let newer = catalog.bundle("kiwi", "kiwi.v1.2.0").unwrap();
    assert_eq!(newer.csv_metadata().unwrap().unwrap()["displayName"], "Kiwi");
    assert!(newer.csv().unwrap().is_none() && newer.objects().unwrap().is_empty());
}

#[test]
fn bundle_has_its_min_kube_version() {
    // kind: ClusterServiceVersion, spec: {minKubeVersion: 1.30.0}
    let object = "{type: olm.bundle.object, value: {data: eyJraW5kIjogIkNsdXN0ZXJTZXJ2aWNlVmVyc2lvbiIsICJzcGVjIjogeyJtaW5LdWJlVmVyc2lvbiI6ICIxLjMwLjAifX0=}}";
    let metadata = "{type: olm.csv.metadata, value: {minKubeVersion: 1.31.0}}";
    let silent = "{type: olm.csv.metadata, value: {displayName: Kiwi}}";
    let identity = "{type: olm.package, value: {packageName: kiwi, version: 1.2.0}}";
    for (properties, wanted) in [
        (vec![], None),
        (vec![object], Some("1.30.0")),
        (vec![metadata], Some("1.31.0")),
        // The metadata takes precedence, as in serving.
        (vec![object, metadata], Some("1.31.0")),
        (vec![metadata, object], Some("1.31.0")),
        (vec![silent, object], None),
        (vec![object, silent], None),
    ] {
        let list = [&[identity][..], &properties].concat().join(", ");
        let text = format!(
            "---\nschema: olm.package\nname: kiwi\ndefaultChannel: stable\n\
             ---\nschema: olm.channel\npackage: kiwi\nname: stable\nentries: [{{name: kiwi.v1}}]\n\
             ---\nschema: olm.bundle\npackage: kiwi\nname: kiwi.v1\nimage: example.com/kiwi:v1\n\
             properties: [{list}]\n"
        );
        for keep in [KeptContent::Facts, KeptContent::All] {
            let files: MemorySource = [("c.yaml", &*text)].into_iter().collect();
            let options = LoadOptions { keep, ..LoadOptions::default() };
            let catalog = Catalog::load_from(&files, &options).unwrap();
            let bundle = catalog.bundle("kiwi", "kiwi.v1").unwrap();
            assert_eq!(bundle.min_kube_version.as_deref(), wanted, "{properties:?}");
        }
    }
}

#[test]
fn documents_of_custom_schemas_are_stored() {
    let catalog = load(&[("c.yaml", SOUND)]).unwrap();
    let [note] = catalog.others() else { panic!("{:?}", catalog.others()) };
    assert_eq!(&**note.schema(), "example.com.notes");
    assert_eq!(note.value().unwrap()["text"], "kept as it is");
}

#[test]
fn digest_covers_content_and_not_files() {
    let one = load(&[("c.yaml", SOUND)]).unwrap();
    let mut documents: Vec<&str> = SOUND.split("---\n").filter(|part| !part.is_empty()).collect();
    documents.reverse();
    let names: Vec<String> = (0..documents.len()).map(|index| format!("d/{index}.yml")).collect();
    let files: Vec<(&str, &str)> =
        names.iter().map(String::as_str).zip(documents.iter().copied()).collect();
    let many = load(&files).unwrap();
    assert_eq!(one.digest(), many.digest());
    let options = mainstay_yaml::Options::default();
    let json: Vec<String> = mainstay_yaml::documents(SOUND.as_bytes(), &options)
        .map(|document| serde_json::to_string_pretty(&document.unwrap().value).unwrap())
        .collect();
    assert_eq!(one.digest(), load(&[("c.json", &json.join("\n"))]).unwrap().digest());
    assert!(one.digest().starts_with("sha256:") && one.digest().len() == 71);
    let other = SOUND.replace("A bird", "Two birds");
    assert_ne!(one.digest(), load(&[("c.yaml", &other)]).unwrap().digest());
}

#[test]
fn field_names_match_in_any_case() {
    let text = SOUND
        .replace("properties:", "Properties:")
        .replace("type:", "TYPE:")
        .replace("data:", "Data:")
        .replace("defaultChannel", "defaultchannel")
        .replace("schema: olm.bundle\n", "Schema: olm.bundle\n");
    let catalog = load(&[("c.yaml", &text)]).unwrap();
    let bundle = catalog.bundle("kiwi", "kiwi.v1.1.0").unwrap();
    assert_eq!(bundle.objects().unwrap().len(), 2);
}

#[test]
fn empty_folder_is_a_catalog() {
    assert_eq!(load(&[]).unwrap().packages().len(), 0);
}

#[test]
fn documents_can_be_declared_before_the_catalog_is_built() {
    let files: MemorySource = [("c.yaml", SOUND)].into_iter().collect();
    let options = LoadOptions::default();
    let declared = CatalogDocuments::read(&files, &options).unwrap();
    let blobs: Vec<(String, String)> =
        declared.blobs().map(|blob| (blob.schema().to_string(), blob.name().to_string())).collect();
    let pair = |schema: &str, name: &str| (schema.to_owned(), name.to_owned());
    assert_eq!(blobs[0], pair("olm.package", "kiwi"));
    assert_eq!(blobs[7], pair("example.com.notes", ""));
    assert_eq!(blobs.len(), 8);
    // Their values declare the same catalog again.
    let values = declared.blobs().map(|blob| (blob.origin().clone(), blob.value().unwrap()));
    let again = CatalogDocuments::of(values).unwrap().check().unwrap();
    assert_eq!(again.digest(), declared.check_in(&files, &options).unwrap().digest());
}

#[test]
fn malformed_documents_are_not_declared_and_inconsistent_ones_are() {
    let options = LoadOptions::default();
    let files: MemorySource = [("c.yaml", "schema: olm.bundle\nimage: 5\n")].into_iter().collect();
    let error = CatalogDocuments::read(&files, &options).unwrap_err();
    let words = "parse bundle: json: cannot unmarshal number into Go struct field Bundle.image of type string";
    assert_eq!(error.upstream(), words);
    let files: MemorySource = [("c.yaml", "schema: olm.bundle\nname: b\n")].into_iter().collect();
    let error =
        CatalogDocuments::read(&files, &options).unwrap().check_in(&files, &options).unwrap_err();
    assert_eq!(error.upstream(), "package name must be set for bundle \"b\"");
    let generated_origin = BlobOrigin { file: "made".into(), line: 1 };
    let error = CatalogDocuments::of([(generated_origin, serde_json::json!("text"))]).unwrap_err();
    assert!(error.upstream().ends_with("\"text\" <=="), "{}", error.upstream());
}

#[test]
fn content_that_is_not_stored_gives_an_error() {
    let files: MemorySource = [("c.yaml", SOUND)].into_iter().collect();
    let keep = |keep| LoadOptions { keep, ..LoadOptions::default() };
    let all = Catalog::load_from(&files, &keep(KeptContent::All)).unwrap();
    let light = Catalog::load_from(&files, &keep(KeptContent::Light)).unwrap();
    let facts = Catalog::load_from(&files, &keep(KeptContent::Facts)).unwrap();
    let json = |catalog: &Catalog| -> Vec<_> {
        catalog.blobs().map(|blob| blob.json().unwrap()).collect()
    };
    assert_eq!(json(&light), json(&all));
    assert_eq!([light.digest(), facts.digest()], ["", ""]);
    let bundle = facts.bundle("kiwi", "kiwi.v1.1.0").unwrap();
    let refused = bundle.csv().unwrap_err();
    assert!(matches!(refused, BlobError::NotKept { .. }), "{refused}");
    assert_eq!(bundle.version, all.bundle("kiwi", "kiwi.v1.1.0").unwrap().version);
    let folder = tempfile::tempdir().unwrap();
    let refused = facts.save(&folder.path().join("snapshot")).unwrap_err();
    assert!(refused.to_string().ends_with("the content of the catalog was not kept"), "{refused}");
}

#[test]
fn append_adds_documents_at_the_end() {
    let read = |name: &str| {
        let text = SOUND.replace("kiwi", name);
        let files: MemorySource = [("c.yaml", text.as_str())].into_iter().collect();
        CatalogDocuments::read(&files, &LoadOptions::default()).unwrap()
    };
    let mut both = read("kiwi");
    // A held blob stays valid.
    let held = both.blobs().next().unwrap();
    both.append(read("emu"));
    let packages: Vec<_> = both
        .blobs()
        .filter(|blob| &**blob.schema() == "olm.package")
        .map(|blob| blob.name().to_string())
        .collect();
    assert_eq!(packages, ["kiwi", "emu"]);
    assert_eq!(held.json().unwrap(), both.blobs().next().unwrap().json().unwrap());
    let catalog = both.check().unwrap();
    assert!(catalog.bundle("emu", "emu.v1.1.0").unwrap().csv().unwrap().is_some());
}
