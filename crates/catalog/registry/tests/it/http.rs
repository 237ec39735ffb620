//! The HTTP catalog API, without a socket.

use crate::catalogs::{SMALL, THEN, big, index, served_catalogs};
use bytes::Bytes;
use flate2::read::GzDecoder;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::BodyExt;
use mainstay_registry::{ServedCatalogs, http::CatalogHttpApi};
use std::{io::Read, sync::Arc};

pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub(crate) fn decompressed(&self) -> String {
        let (mut text, mut rest) = (String::new(), &*self.body);
        while !rest.is_empty() {
            let mut frame = ruzstd::decoding::StreamingDecoder::new(&mut rest).unwrap();
            frame.read_to_string(&mut text).unwrap();
        }
        text
    }

    pub(crate) fn unzipped(&self) -> String {
        let mut text = String::new();
        GzDecoder::new(&*self.body).read_to_string(&mut text).unwrap();
        text
    }
}

pub(crate) async fn ask(
    api: &CatalogHttpApi,
    method: Method,
    uri: &str,
    headers: &[(&str, &str)],
) -> Answer {
    let mut request = Request::builder().method(method).uri(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let (head, body) = api.answer(&request.body(()).unwrap()).into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    Answer { status: head.status, headers: head.headers, body }
}

pub(crate) async fn get(api: &CatalogHttpApi, uri: &str) -> Answer {
    ask(api, Method::GET, uri, &[]).await
}

const ALL: &str = "/catalogs/small/api/v1/all";
const METAS: &str = "/catalogs/small/api/v1/metas";

pub(crate) fn names(text: &str) -> Vec<String> {
    let name = |line: &str| {
        let blob: serde_json::Value = serde_json::from_str(line).unwrap();
        let text = |key: &str| blob[key].as_str().unwrap_or_default().to_owned();
        format!("{} {}", text("schema").trim_start_matches("olm."), text("name"))
    };
    text.lines().map(name).collect()
}

#[tokio::test]
async fn all_is_every_blob_on_a_line_in_the_order_of_the_files() {
    let answer = get(&CatalogHttpApi::new(served_catalogs()), ALL).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), "application/jsonl");
    assert_eq!(answer.header("content-length"), answer.body.len().to_string());
    assert_eq!(answer.header("last-modified"), THEN);
    assert_eq!(answer.header("accept-ranges"), "bytes");
    assert_eq!(answer.header("vary"), "Accept-Encoding");
    assert!(answer.header("etag").starts_with('"'));
    assert_eq!(
        answer.text().lines().next().unwrap(),
        r#"{"defaultChannel":"stable","name":"kiwi","schema":"olm.package"}"#
    );
    assert!(answer.text().ends_with('\n'));
    // shows OLMV1-111
    assert_eq!(
        names(answer.text()),
        [
            "package kiwi",
            "channel stable",
            "bundle kiwi.v1.0.0",
            "bundle kiwi.v1.1.0",
            "package plum",
            "channel stable",
            "bundle plum.v2.0.0",
            "example.notes a b",
        ]
    );
}

#[tokio::test]
async fn metas_are_the_blobs_that_match_every_parameter() {
    let api = CatalogHttpApi::new(served_catalogs());
    let all = get(&api, ALL).await;
    for (query, found) in [
        ("?schema=olm.package", &["package kiwi", "package plum"][..]),
        ("?schema=olm.package&name=plum", &["package plum"]),
        // The blobs of the package, not the package blob itself.
        ("?package=plum", &["channel stable", "bundle plum.v2.0.0", "example.notes a b"]),
        ("?package=plum&schema=olm.channel", &["channel stable"]),
        ("?name=stable", &["channel stable", "channel stable"]),
        ("?name=a+b", &["example.notes a b"]),
        ("?name=a%20b", &["example.notes a b"]),
        ("?schema=olm.bundle&package=kiwi&name=kiwi.v1.1.0", &["bundle kiwi.v1.1.0"]),
        ("?schema=olm.bundle&&schema=olm.package&package=plum", &["bundle plum.v2.0.0"]),
        ("?schema=&package=&name=plum", &["package plum"]),
        ("?schema=olm.nothing", &[]),
        ("?package=plum&name=kiwi.v1.0.0", &[]),
    ] {
        let answer = get(&api, &format!("{METAS}{query}")).await;
        assert_eq!(answer.status, 200, "{query}");
        assert_eq!(answer.header("content-type"), "application/jsonl", "{query}");
        assert_eq!(answer.header("last-modified"), THEN, "{query}");
        assert_eq!(answer.header("etag"), all.header("etag"), "{query}");
        assert_eq!(answer.header("accept-ranges"), "", "{query}");
        // shows OLMV1-112 OLMV1-113 OLMV1-114
        assert_eq!(names(answer.text()), found, "{query}");
    }
    for query in ["", "?", "?schema=", "?schema=&name="] {
        assert_eq!(get(&api, &format!("{METAS}{query}")).await.body, all.body, "{query}");
    }
}

#[tokio::test]
async fn invalid_requests_have_upstreams_errors() {
    let api = CatalogHttpApi::new(served_catalogs());
    for (method, uri, status, text) in [
        ("GET", "/", 404, "404 page not found"),
        ("GET", "/catalogs/", 404, "404 page not found"),
        ("GET", "/catalogs/small", 404, "404 page not found"),
        ("GET", "/catalogs/small/", 404, "404 page not found"),
        ("GET", "/catalogs/small/api/v1/all/", 404, "404 page not found"),
        ("GET", "/catalogs/small/api/v1/graphql", 404, "404 page not found"),
        ("POST", "/catalogs/small/api", 404, "404 page not found"),
        ("POST", ALL, 405, "Method Not Allowed"),
        ("PUT", "/catalogs/Bad/api/v1/metas?x=1", 405, "Method Not Allowed"),
        ("GET", "/catalogs/none/api/v1/all", 404, "404 Not Found"),
        ("GET", "/catalogs/none/api/v1/metas", 404, "404 Not Found"),
        ("GET", "/catalogs/none/api/v1/metas?x=1", 400, "400 Bad Request"),
        ("GET", "/catalogs/small/api/v1/metas?other=x", 400, "400 Bad Request"),
        ("GET", "/catalogs/small/api/v1/metas?schema=a&SCHEMA=a", 400, "400 Bad Request"),
        (
            "GET",
            "/catalogs/loading/api/v1/all",
            503,
            "the catalog `loading` is being loaded: ask again in a moment",
        ),
        (
            "GET",
            "/catalogs/broken/api/v1/metas",
            503,
            "the catalog `broken` cannot be served: a.yaml:3: no",
        ),
    ] {
        let answer = ask(&api, method.parse().unwrap(), uri, &[]).await;
        // shows OLMV1-109 OLMV1-110 OLMV1-114 OLMV1-116
        assert_eq!((answer.status.as_u16(), answer.text()), (status, &*format!("{text}\n")));
        assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8");
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert_eq!(answer.header("allow"), if status == 405 { "GET, HEAD" } else { "" });
        assert_eq!(answer.header("retry-after"), if status == 503 { "1" } else { "" });
    }
    for name in ["Small", "-a", "a_b", "..%2fetc", "%zz", "a%00b"] {
        let answer = get(&api, &format!("/catalogs/{name}/api/v1/all")).await;
        assert_eq!(answer.status, 400, "{name}");
        let start = "invalid catalog name: a lowercase RFC 1123 subdomain must consist of ";
        assert!(answer.text().starts_with(start), "{name}: {}", answer.text());
    }
    assert_eq!(get(&api, "/catalogs/sm%61ll/api/v1/all").await.status, 200);
    // `all` ignores parameters.
    assert_eq!(get(&api, &format!("{ALL}?other=x")).await.status, 200);
}

#[tokio::test]
async fn head_has_the_headers_of_get() {
    let api = CatalogHttpApi::new(served_catalogs());
    for (uri, names_length) in [(ALL, true), (METAS, false), (&format!("{METAS}?name=none"), false)]
    {
        let mut get = get(&api, uri).await;
        let head = ask(&api, Method::HEAD, uri, &[("accept-encoding", "gzip")]).await;
        assert!(head.body.is_empty());
        if !names_length {
            get.headers.remove("content-length");
        }
        assert_eq!((head.status, head.headers), (get.status, get.headers), "{uri}");
    }
    for uri in ["/", "/catalogs/none/api/v1/all", "/catalogs/small/api/v1/metas?other=x"] {
        let head = ask(&api, Method::HEAD, uri, &[]).await;
        let get = get(&api, uri).await;
        assert_eq!((head.status, head.headers), (get.status, get.headers), "{uri}");
        assert!(head.body.is_empty());
    }
}

#[tokio::test]
async fn a_path_that_is_not_clean_is_redirected() {
    let api = CatalogHttpApi::new(served_catalogs());
    for (uri, location) in [
        ("/catalogs//api/v1/all", "/catalogs/api/v1/all"),
        ("/catalogs/./small/api/v1/metas?a=b&c", "/catalogs/small/api/v1/metas?a=b&c"),
        ("/catalogs/../x/", "/x/"),
    ] {
        let answer = get(&api, uri).await;
        assert_eq!((answer.status.as_u16(), answer.header("location")), (307, location), "{uri}");
        let link = location.replace('&', "&amp;");
        assert_eq!(answer.text(), format!("<a href=\"{link}\">Temporary Redirect</a>.\n\n"));
        assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
        for (method, kind) in [(Method::HEAD, "text/html; charset=utf-8"), (Method::POST, "")] {
            let answer = ask(&api, method, uri, &[]).await;
            assert_eq!((answer.status.as_u16(), answer.header("location")), (307, location));
            assert_eq!((answer.header("content-type"), answer.text()), (kind, ""));
        }
    }
}

#[tokio::test]
async fn without_metas_the_path_does_not_exist() {
    let api = CatalogHttpApi::new(served_catalogs()).with_metas(false);
    for method in [Method::GET, Method::HEAD, Method::POST] {
        assert_eq!(ask(&api, method, METAS, &[]).await.status, 404);
    }
    assert_eq!(get(&api, METAS).await.text(), "404 page not found\n");
    assert_eq!(get(&api, ALL).await.status, 200);
}

#[tokio::test]
async fn removed_catalog_is_as_an_absent_one_until_it_has_content_again() {
    let catalogs = served_catalogs();
    let api = CatalogHttpApi::new(Arc::clone(&catalogs));
    let all = get(&api, ALL).await;
    catalogs.remove("small");
    assert_eq!(get(&api, ALL).await.text(), "404 Not Found\n");
    assert_eq!(get(&api, &format!("{METAS}?x=y")).await.status, 400);
    catalogs.put("small", index(SMALL));
    assert_eq!(get(&api, ALL).await.body, all.body);
}

#[tokio::test]
async fn a_client_with_current_content_gets_304() {
    let api = CatalogHttpApi::new(served_catalogs());
    let tag = get(&api, ALL).await.header("etag").to_owned();
    for uri in [ALL, METAS, &format!("{METAS}?schema=olm.bundle")] {
        for (name, value, status) in [
            ("if-none-match", &*tag, 304),
            ("if-none-match", "\"other\"", 200),
            ("if-modified-since", THEN, 304),
            ("if-modified-since", "Fri, 02 Jan 2026 15:04:04 GMT", 200),
            ("if-match", "\"other\"", 412),
            ("if-unmodified-since", "Fri, 02 Jan 2026 15:04:04 GMT", 412),
        ] {
            let answer = ask(&api, Method::GET, uri, &[(name, value)]).await;
            // shows OLMV1-115
            assert_eq!(answer.status, status, "{uri} {name}: {value}");
            assert_eq!(answer.header("etag"), tag);
            if status != 200 {
                assert!(answer.body.is_empty());
                let names_type = status == 412 && uri == ALL;
                let kind = if names_type { "application/jsonl" } else { "" };
                assert_eq!(answer.header("content-type"), kind);
                assert_eq!(answer.header("content-length"), "");
            }
        }
    }
}

#[tokio::test]
async fn the_etag_changes_with_the_bytes_and_not_with_the_names_of_files() {
    let shelf = Arc::new(ServedCatalogs::default());
    let api = CatalogHttpApi::new(Arc::clone(&shelf));
    let tag = async |files: &[(&str, &str)]| {
        shelf.add("c").put(index(files));
        get(&api, "/catalogs/c/api/v1/all").await.header("etag").to_owned()
    };
    let (kiwi, plum) = (SMALL[0].1, SMALL[1].1);
    let first = tag(SMALL).await;
    assert_eq!(tag(&[("b/x.yaml", kiwi), ("c.yaml", plum)]).await, first);
    assert_ne!(tag(&[("b/x.yaml", plum), ("c.yaml", kiwi)]).await, first, "another order");
    assert_ne!(tag(&[("kiwi.yaml", kiwi)]).await, first);
}

#[tokio::test]
async fn long_bodies_are_compressed_on_request() {
    let shelf = served_catalogs();
    shelf.add("big").put(big(3, 900).index().unwrap());
    let api = CatalogHttpApi::new(shelf);
    let uri = "/catalogs/big/api/v1/all";
    let plain = get(&api, uri).await;
    let zipped = ask(&api, Method::GET, uri, &[("accept-encoding", "br, gzip")]).await;
    assert_eq!(zipped.header("content-encoding"), "gzip");
    assert_eq!(zipped.header("content-length"), "");
    assert_eq!(zipped.header("accept-ranges"), "");
    assert_eq!(zipped.unzipped(), plain.text());
    let zstd = ask(&api, Method::GET, uri, &[("accept-encoding", "gzip, zstd")]).await;
    assert_eq!(zstd.header("content-encoding"), "zstd");
    assert_eq!(zstd.decompressed(), plain.text());
    let tags = [&plain, &zipped, &zstd].map(|answer| answer.header("etag").to_owned());
    let digest = tags[0].trim_matches('"');
    assert_eq!(tags[1..], [format!("\"{digest}-gzip\""), format!("\"{digest}-zstd\"")]);
    for tag in &tags {
        let asked = [("accept-encoding", "gzip"), ("if-none-match", tag)];
        assert_eq!(ask(&api, Method::GET, uri, &asked).await.status, 304, "{tag}");
    }
    let small = format!("{METAS}?schema=olm.package");
    let small = ask(&api, Method::GET, &small, &[("accept-encoding", "gzip")]).await;
    assert_eq!(small.header("content-encoding"), "");
    assert_eq!(names(small.text()).len(), 2);
}

#[tokio::test]
async fn concatenated_ranges_equal_the_whole() {
    let api = CatalogHttpApi::new(served_catalogs());
    let all = get(&api, ALL).await;
    let size = all.body.len();
    let part = async |range: &str, more: &[(&str, &str)]| {
        let asked = [&[("range", range), ("accept-encoding", "gzip")], more].concat();
        ask(&api, Method::GET, ALL, &asked).await
    };
    for cut in 1..size {
        let first = part(&format!("bytes=0-{}", cut - 1), &[]).await;
        let rest = part(&format!("bytes={cut}-"), &[("if-range", THEN)]).await;
        assert_eq!((first.status, rest.status), (206.try_into().unwrap(), first.status));
        assert_eq!(first.header("content-range"), format!("bytes 0-{}/{size}", cut - 1));
        assert_eq!(rest.header("content-range"), format!("bytes {cut}-{}/{size}", size - 1));
        assert_eq!(rest.header("content-length"), (size - cut).to_string());
        assert_eq!(rest.header("content-encoding"), "", "parts are of the plain content");
        assert_eq!([first.body, rest.body].concat(), all.body, "{cut}");
    }
    let beyond = part(&format!("bytes={size}-"), &[]).await;
    assert_eq!(beyond.status, 416);
    assert_eq!(beyond.header("content-range"), format!("bytes */{size}"));
    assert_eq!(beyond.text(), "invalid range: failed to overlap\n");
    let invalid = part("lines=1-2", &[]).await;
    assert_eq!((invalid.status.as_u16(), invalid.text()), (416, "invalid range\n"));
    assert_eq!(invalid.header("content-range"), "");
    let parts = part("bytes=0-1, 4-5", &[]).await;
    assert_eq!(parts.status, 206);
    let kind = parts.header("content-type");
    let boundary = kind.strip_prefix("multipart/byteranges; boundary=").unwrap();
    let text = |range: std::ops::Range<usize>| std::str::from_utf8(&all.body[range]).unwrap();
    let head = |range: &str| {
        format!("Content-Range: bytes {range}/{size}\r\nContent-Type: application/jsonl\r\n\r\n")
    };
    let wanted = format!(
        "--{boundary}\r\n{}{}\r\n--{boundary}\r\n{}{}\r\n--{boundary}--\r\n",
        head("0-1"),
        text(0..2),
        head("4-5"),
        text(4..6)
    );
    assert_eq!(parts.text(), wanted);
    assert_eq!(parts.header("content-length"), wanted.len().to_string());
    for (range, more) in [
        ("bytes=0-,0-1", &[][..]),
        ("bytes=0-1", &[("if-range", "W/\"x\"")]),
        ("bytes=0-1", &[("if-range", "Fri, 02 Jan 2026 15:04:06 GMT")]),
    ] {
        assert_eq!(part(range, more).await.status, 200, "{range} {more:?}");
    }
    let metas = ask(&api, Method::GET, METAS, &[("range", "bytes=0-1")]).await;
    assert_eq!((metas.status.as_u16(), metas.body), (200, all.body), "only `all` has parts");
}

#[tokio::test]
async fn concurrent_downloads_are_bounded_and_keep_their_content() {
    let shelf = served_catalogs();
    let api = CatalogHttpApi::new(Arc::clone(&shelf)).with_downloads(1);
    let request = Request::get(ALL).body(()).unwrap();
    let first = api.answer(&request);
    let second = get(&api, ALL).await;
    assert_eq!(second.status, 503);
    assert_eq!(second.header("retry-after"), "1");
    assert_eq!(ask(&api, Method::HEAD, ALL, &[]).await.status, 200, "that is no download");
    // New content does not affect a download in progress.
    let length = first.headers()["content-length"].to_str().unwrap().to_owned();
    shelf.add("small").put(index(&SMALL[..1]));
    // shows OLMV1-117
    assert_eq!(first.into_body().collect().await.unwrap().to_bytes().len().to_string(), length);
    assert_eq!(names(get(&api, ALL).await.text()).len(), 4);
}
