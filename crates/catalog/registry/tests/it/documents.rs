//! Documents without an index: in memory and in a file, with everything that is read of them.

use crate::{
    catalogs::big,
    http::{Answer, ask, get},
};
use http::Method;
use mainstay_catalog::{CatalogDocuments, DocumentRules, FileSource, LoadOptions, MemorySource};
use mainstay_registry::{ServedCatalogs, ServedDocuments, http::CatalogHttpApi, stored};
use std::{
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

fn modified() -> SystemTime {
    UNIX_EPOCH + Duration::from_hours(500_000)
}

/// An API with a catalog `c` of these documents in memory, and `f` of the same in a file.
fn both(blobs: &[mainstay_catalog::Blob]) -> (CatalogHttpApi, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let catalogs = Arc::new(ServedCatalogs::default());
    let memory = ServedDocuments::in_memory(blobs.to_vec(), modified()).unwrap();
    let file = stored::create(&folder.path().join("f"), blobs.to_vec(), modified()).unwrap();
    assert_eq!(memory.digest(), file.digest());
    catalogs.put_documents("c", Arc::new(memory));
    catalogs.put_documents("f", Arc::new(file));
    (CatalogHttpApi::new(catalogs), folder)
}

/// The responses of both catalogs, which are equal.
async fn equal(api: &CatalogHttpApi, path: &str, headers: &[(&str, &str)]) -> Answer {
    let memory = ask(api, Method::GET, &format!("/catalogs/c/api/v1/{path}"), headers).await;
    let file = ask(api, Method::GET, &format!("/catalogs/f/api/v1/{path}"), headers).await;
    assert_eq!((memory.status, &memory.headers), (file.status, &file.headers), "{path}");
    assert!(memory.body == file.body, "{path} {headers:?}");
    memory
}

#[tokio::test]
async fn long_and_short_documents_are_complete_in_every_form() {
    for (bundles, bytes) in [(3, 700_000), (400, 900), (12, 20_000), (1, 0)] {
        let index = big(bundles, bytes).index().unwrap();
        let blobs: Vec<_> = index.catalog().blobs().collect();
        let (api, _folder) = both(&blobs);
        let lines = |wanted: &dyn Fn(&mainstay_catalog::Blob) -> bool| -> Vec<u8> {
            let chosen = blobs.iter().filter(|blob| wanted(blob));
            chosen.flat_map(|blob| [blob.json().unwrap(), b"\n".to_vec()].concat()).collect()
        };
        let all = lines(&|_| true);
        let of_schema = |schema: &'static str| lines(&|blob| &**blob.schema() == schema);
        let second = lines(&|blob| &**blob.name() == "big.v1.0.1");
        let package = lines(&|blob| &**blob.schema() != "olm.package");
        for (path, wanted) in [
            ("all", &all),
            ("metas", &all),
            ("metas?schema=olm.bundle", &of_schema("olm.bundle")),
            ("metas?schema=olm.channel", &of_schema("olm.channel")),
            ("metas?package=big", &package),
            ("metas?name=big.v1.0.1", &second),
        ] {
            // The second time, the compressed blocks are there.
            for _ in 0..2 {
                let plain = equal(&api, path, &[]).await;
                // shows CATD-05
                assert!(plain.body == *wanted, "{path}: {bundles} × {bytes}");
                for coding in ["gzip", "zstd"] {
                    let zipped = equal(&api, path, &[("accept-encoding", coding)]).await;
                    let text = match zipped.header("content-encoding") {
                        "gzip" => zipped.unzipped(),
                        "zstd" => zipped.decompressed(),
                        _ => zipped.text().to_owned(),
                    };
                    assert!(text.as_bytes() == *wanted, "{path} {coding}: {bundles} × {bytes}");
                }
            }
        }
        let middle = all.len() / 2;
        let range = format!("bytes={middle}-{}", middle + 100);
        let part = equal(&api, "all", &[("range", &range)]).await;
        assert!(part.body == all[middle..=(middle + 100).min(all.len() - 1)]);
        let parts = equal(&api, "all", &[("range", "bytes=0-9,-9")]).await;
        assert_eq!(parts.status, 206);
    }
}

#[tokio::test]
async fn download_is_complete_after_queries_that_compressed_some_of_its_blocks() {
    let index = big(12, 20_000).index().unwrap();
    let blobs: Vec<_> = index.catalog().blobs().collect();
    for coding in ["gzip", "zstd"] {
        let (api, _folder) = both(&blobs);
        let headers = [("accept-encoding", coding)];
        for name in ["big.v1.0.1", "big.v1.0.5", "big.v1.0.6"] {
            equal(&api, &format!("metas?name={name}"), &headers).await;
        }
        let plain = equal(&api, "all", &[]).await;
        for path in ["all", "metas?package=big", "all"] {
            let zipped = equal(&api, path, &headers).await;
            let text = if coding == "gzip" { zipped.unzipped() } else { zipped.decompressed() };
            assert!(plain.text().ends_with(&text), "{path} {coding}");
        }
    }
}

#[tokio::test]
async fn documents_that_make_no_catalog_are_served_as_they_are() {
    let text = "schema: ''\nname: a\n---\nschema: olm.package\nname: p\npackage: p\ny: 1.0\n---\n\
                schema: olm.bundle\npackage: p\nImage: <&>\nn: 12345678901234567890\n";
    let source = MemorySource::from_iter([("a.yaml", text.as_bytes())]);
    let read = |rules| {
        let options = LoadOptions { rules, ..LoadOptions::default() };
        CatalogDocuments::read(&source as &dyn FileSource, &options)
    };
    assert!(read(DocumentRules::Catalog).is_err());
    let documents = read(DocumentRules::Meta).unwrap();
    let blobs: Vec<_> = documents.blobs().collect();
    let (api, _folder) = both(&blobs);
    let all = equal(&api, "all", &[]).await;
    assert_eq!(
        all.text().lines().collect::<Vec<_>>(),
        [
            r#"{"name":"a","schema":""}"#,
            r#"{"name":"p","package":"p","schema":"olm.package","true":1}"#,
            r#"{"Image":"<&>","false":12345678901234567890,"package":"p","schema":"olm.bundle"}"#,
        ]
    );
    assert_eq!(equal(&api, "metas?package=p", &[]).await.text().lines().count(), 2);
}

#[tokio::test]
async fn a_download_in_progress_keeps_content_that_was_replaced_or_removed() {
    let index = big(4, 300_000).index().unwrap();
    let blobs: Vec<_> = index.catalog().blobs().collect();
    let folder = tempfile::tempdir().unwrap();
    let stored = stored::create(&folder.path().join("c"), blobs, modified()).unwrap();
    let catalogs = Arc::new(ServedCatalogs::default());
    let api = CatalogHttpApi::new(Arc::clone(&catalogs));
    let uri = "/catalogs/c/api/v1/all";
    catalogs.put_documents("c", Arc::new(stored));
    let whole = get(&api, uri).await.body;
    let first = api.answer(&http::Request::get(uri).body(()).unwrap());
    let empty = ServedDocuments::in_memory([], modified()).unwrap();
    catalogs.put_documents("c", Arc::new(empty));
    assert_eq!(get(&api, uri).await.header("content-length"), "0");
    catalogs.remove("c");
    assert_eq!(get(&api, uri).await.status, 404);
    drop(folder);
    let body = http_body_util::BodyExt::collect(first.into_body()).await.unwrap().to_bytes();
    assert!(body == whole);
}

#[test]
fn folder_that_cannot_be_created_is_named() {
    let root = tempfile::NamedTempFile::new().unwrap();
    let folder = root.path().join("c");
    let error = stored::create(&folder, [], modified()).unwrap_err().to_string();
    let expected = format!("cannot write {}.unfinished: not a directory", folder.display());
    assert_eq!(error, expected);
}
