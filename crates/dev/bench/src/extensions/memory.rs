//! Memory of the controllers and the catalog server as a process of their own.

use super::extension_cluster::{NAMESPACE, catalog_text, extension, write_bundle};
use super::{Arguments, catalog};
use crate::cluster_catalog::{
    Measured, SETTLING_TIME, create_catalog, find_catalog, push_catalog, registry,
    start_controllers,
};
use crate::figure::Figure;
use crate::launch::{Data, MainstayServer};
use crate::process::{Usage, peak};
use anyhow::{Context as _, Result};
use mainstay_api::resources::{CLUSTER_CATALOG, CLUSTER_EXTENSION};
use mainstay_client::{Cluster, ObjectList};
use mainstay_image::build::LayerFiles;
use mainstay_object::{Object, builtin};
use serde_json::json;
use std::ffi::OsString;
use std::path::Path;

/// The memory with a published catalog and some extensions of another one: keys, titles and figures.
pub(super) async fn measure(arguments: &Arguments) -> Result<Vec<(&'static str, String, Figure)>> {
    let count = arguments.few;
    let program = arguments.program.path()?;
    let work = arguments.program.folder()?;
    let mut unpacked = Vec::new();
    let certified = arguments.catalog.folder(&mut unpacked)?;
    let mut up_arguments = vec![OsString::from("--bare")];
    let mut add_image = |name: &str, folder: &Path| {
        let mut image = OsString::from(format!("localhost/{name}:v1="));
        image.push(folder);
        up_arguments.extend(["--image".into(), image]);
    };
    add_image("certified", &certified);
    for package in (0..count).map(catalog::package) {
        let folder = work.path().join(&package);
        write_bundle(&folder, &package, 1)?;
        add_image(&format!("{package}-bundle"), &folder);
    }
    let up = MainstayServer::start_with(&program, Data::Memory, &up_arguments, work.path()).await?;
    let cluster = Cluster::new(up.api.client.clone());
    let registry = registry(work.path())?;
    // The catalog names the images of its bundles, and so the port of the registry.
    let text = catalog_text(count, 0)?.replace("example.com/", &format!("{registry}/"));
    let mut layer = LayerFiles::default();
    layer.add("configs/catalog.json", text)?;
    push_catalog(&program, &layer, work.path(), &format!("{registry}/tools:v1"))?;
    let run = start_controllers(&program, work.path())?;
    let measured = Measured { clock: up.api.clock, rows: Vec::new() };
    measured
        .until("the controllers are there", || async {
            let all = ObjectList::default();
            cluster.list(&CLUSTER_CATALOG, None, &all).await.is_ok()
                && cluster.list(&CLUSTER_EXTENSION, None, &all).await.is_ok()
        })
        .await?;
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    let namespace = Object::from_value(namespace).context("a namespace")?;
    cluster.create(&builtin::NAMESPACE, &namespace).await?;
    for name in ["certified", "tools"] {
        create_catalog(&cluster, name, &format!("{registry}/{name}:v1"), false).await?;
    }
    for name in ["certified", "tools"] {
        let is_served = || async {
            let catalog = find_catalog(&cluster, name).await;
            catalog.is_some_and(|catalog| catalog.condition("Serving") == Some("True"))
        };
        measured.until("both catalogs are served", is_served).await?;
    }
    for package in (0..count).map(catalog::package) {
        let extension = Object::from_value(extension(&package, 1)).context("an extension")?;
        cluster.create(&CLUSTER_EXTENSION, &extension).await?;
    }
    for package in (0..count).map(catalog::package) {
        let is_installed = || async {
            let found = cluster.find(&CLUSTER_EXTENSION, None, &package).await.ok().flatten();
            found.is_some_and(|found| found.condition("Installed") == Some("True"))
        };
        measured.until("the extensions are installed", is_installed).await?;
    }
    tokio::time::sleep(SETTLING_TIME).await;
    let memory = Figure::size(Usage::of(&[run.process()])?.memory);
    let peak = Figure::size(peak(run.process())?);
    drop(run);
    up.stop().await?;
    Ok(vec![
        ("memory", format!("controllers and server with {count} extensions"), memory),
        ("peak", "its peak".to_owned(), peak),
    ])
}
