//! Rendered manifests, compared with recorded answers of operator-controller: written bundles in
//! many settings, published ones in ten. And blobs of both, compared with `opm render`.

use crate::opm_render::Score;
use crate::{Flags, render};
use mainstay_bundle::render::{
    CertManager, CertificateProvider, DeploymentConfig, InstallSettings, RegistryV1Bundle,
    RenderError, RenderSettings, ServiceCa,
};
use mainstay_bundle::{BundleFolder, Limits, is_bundle};
use mainstay_gocompat::json::{Html, Numbers};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

fn read_bundle(folder: &Path) -> Result<RegistryV1Bundle, RenderError> {
    RegistryV1Bundle::read(&BundleFolder::new(folder), &Limits::default())
}

/// Our answer to a recorded request about a bundle.
fn our_answer(read_bundle: &Result<RegistryV1Bundle, RenderError>, request: &Value) -> Value {
    let read_bundle = match read_bundle {
        Ok(read_bundle) => read_bundle,
        Err(error) => return json!({"error": error.to_string()}),
    };
    if request["mode"] == "schema" {
        let mut schema = read_bundle.schema();
        schema.as_object_mut().unwrap().remove("components");
        schema["properties"]["deploymentConfig"] = json!({"present": true});
        return json!({"schema": schema});
    }
    let certificates: Option<&dyn CertificateProvider> =
        match request["certProvider"].as_str().unwrap() {
            "cert-manager" => Some(&CertManager),
            "service-ca" => Some(&ServiceCa),
            _ => None,
        };
    let outcome = if request["mode"] == "extension" {
        extension(read_bundle, request, certificates)
    } else {
        renderer(read_bundle, request, certificates)
    };
    match outcome {
        Ok(objects) => json!({"objects": objects.iter().map(as_written).collect::<Vec<_>>()}),
        Err(error) => json!({"error": error.to_string()}),
    }
}

fn extension(
    read_bundle: &RegistryV1Bundle,
    request: &Value,
    certificates: Option<&dyn CertificateProvider>,
) -> Result<Vec<Value>, RenderError> {
    // A null configuration is absent, as in the API.
    let config = request.get("config").filter(|config| !config.is_null()).map(ToString::to_string);
    let config = config.or_else(|| Some(request.get("configText")?.as_str()?.to_owned()));
    let namespace = request["installNamespace"].as_str().unwrap();
    read_bundle.install(&InstallSettings {
        certificates,
        webhooks: request["webhookSupport"] == true,
        single_namespaces: request["singleOwnNamespaceGate"] == true,
        deployment_config: request["deploymentConfigGate"] == true,
        config: config.as_ref().map(String::as_bytes),
        ..InstallSettings::into_namespace(namespace)
    })
}

fn renderer(
    read_bundle: &RegistryV1Bundle,
    request: &Value,
    certificates: Option<&dyn CertificateProvider>,
) -> Result<Vec<Value>, RenderError> {
    let targets = request["targetNamespaces"].as_array().into_iter().flatten();
    let targets: Vec<String> = targets.map(|name| name.as_str().unwrap().to_owned()).collect();
    let config =
        request.get("deploymentConfig").map(|config| DeploymentConfig::read(config).unwrap());
    read_bundle.render(&RenderSettings {
        namespace: request["installNamespace"].as_str().unwrap(),
        targets: &targets,
        certificates,
        deployment_config: config.as_ref(),
        ..RenderSettings::default()
    })
}

/// An object with its numbers as Go encodes them.
fn as_written(object: &Value) -> Value {
    let text = mainstay_gocompat::json::value(object, Html::Plain, Numbers::Object);
    serde_json::from_str(&text).unwrap()
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn sorted(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Compares all requests of a case. Recorded objects may be references to those of other requests.
fn compare(score: &mut Score, name: &str, folder: &Path, recorded: &Value) {
    let recorded = recorded.as_array().unwrap();
    let read_bundle = read_bundle(folder);
    for (at, entry) in recorded.iter().enumerate() {
        let mut wanted = entry["answer"].clone();
        if let Some(objects) = wanted.get_mut("objects").and_then(Value::as_array_mut) {
            for object in objects {
                if let Some(same) = object.get("sameAs").and_then(Value::as_str) {
                    let (request, index) = same.split_once('/').unwrap();
                    let (request, index): (usize, usize) =
                        (request.parse().unwrap(), index.parse().unwrap());
                    *object = recorded[request]["answer"]["objects"][index].clone();
                }
            }
        }
        let found = our_answer(&read_bundle, &entry["request"]);
        score.compare(format!("{name}#{at}"), &found, &wanted);
    }
}

#[test]
fn manifests_of_written_bundles_are_as_recorded() {
    let Some(data) = mainstay_testdata::unpack("answers/bundle-render", "recorded manifests")
    else {
        return;
    };
    let mut score = Score::default();
    for case in sorted(&data.path().join("bundle-render/cases")) {
        let name = format!("render/{}", case.file_name().unwrap().to_str().unwrap());
        compare(&mut score, &name, &case.join("bundle"), &read(&case.join("answers.json")));
    }
    // shows OLMV1-130
    score.assert_as_listed("recorded manifests of written bundles agree", "render/");
}

#[test]
fn manifests_of_the_validators_bundles_are_as_recorded() {
    let Some(data) = mainstay_testdata::unpack("answers/bundle-validate", "recorded manifests")
    else {
        return;
    };
    let (mut manifests, mut blobs) = (Score::default(), Score::default());
    for case in sorted(&data.path().join("bundle-validate/cases")) {
        let name = case.file_name().unwrap().to_str().unwrap();
        let bundle = case.join("bundle");
        if case.join("extension.json").is_file() {
            let recorded = read(&case.join("extension.json"));
            compare(&mut manifests, &format!("extension/{name}"), &bundle, &recorded);
        }
        if case.join("catalog.json").is_file() {
            let recorded = read(&case.join("catalog.json"));
            compare_blobs(&mut blobs, &format!("odd-blobs/{name}"), &bundle, "bundle", &recorded);
        }
    }
    manifests.assert_as_listed("recorded manifests of odd bundles agree", "extension/");
    blobs.assert_as_listed("recorded blobs of odd bundles agree", "odd-blobs/");
}

#[test]
fn manifests_of_published_bundles_are_as_recorded() {
    let Some(data) = mainstay_testdata::unpack("answers/bundle-render", "recorded manifests")
    else {
        return;
    };
    let Some(bundles) = mainstay_testdata::unpack("bundles-249", "published bundles") else {
        return;
    };
    let published = data.path().join("bundle-render/published");
    let lines = |name: &str| -> Vec<Value> {
        let text = fs::read_to_string(published.join(name)).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let objects: BTreeMap<String, Value> = lines("objects.jsonl")
        .into_iter()
        .map(|mut line| (line["sha256"].as_str().unwrap().to_owned(), line["object"].take()))
        .collect();
    let requests = read(&published.join("requests.json"));
    let mut score = Score::default();
    for line in lines("bundles.jsonl") {
        let name = line["bundle"].as_str().unwrap();
        let read_bundle = read_bundle(&bundles.path().join(name));
        let answers = line["answers"].as_array().unwrap();
        for (at, (request, wanted)) in requests.as_array().unwrap().iter().zip(answers).enumerate()
        {
            let mut wanted = wanted.clone();
            if let Some(list) = wanted.get_mut("objects").and_then(Value::as_array_mut) {
                for id in list {
                    *id = objects[id.as_str().unwrap()].clone();
                }
            }
            score.compare(format!("all/{name}#{at}"), &our_answer(&read_bundle, request), &wanted);
        }
    }
    score.assert_as_listed("recorded manifests of published bundles agree", "all/");

    let mut score = Score::default();
    for path in sorted(&data.path().join("bundle-render/catalog")) {
        let recorded = read(&path);
        let name = recorded["bundle"].as_str().unwrap();
        let folder = bundles.path().join(name);
        compare_blobs(&mut score, &format!("blobs/{name}"), &folder, name, &recorded);
    }
    score.assert_as_listed("recorded blobs of published bundles agree", "blobs/");
}

/// Compares the output of `opm render`, by its digest, or its error.
fn compare_blobs(score: &mut Score, name: &str, folder: &Path, typed: &str, recorded: &Value) {
    let template = "images.example.com/{{.Package}}/{{.Name}}:{{.Version}}";
    if !is_bundle(&BundleFolder::new(folder)) {
        return;
    }
    for (key, flags) in [
        ("default", Flags::default()),
        ("csv-metadata", Flags { migrate: true, template: Some(template), yaml: false }),
    ] {
        let Some(wanted) = recorded.get(key) else { continue };
        let found = match render(&[(&BundleFolder::new(folder), typed)], &flags) {
            // A bundle without a package has no output, and no recorded digest.
            Ok(text) if text.is_empty() => Value::Null,
            Ok(text) => json!(format!("{:x}", Sha256::digest(text))),
            Err(why) => json!(without_time(&why)),
        };
        let wanted = match wanted.get("stderr").and_then(Value::as_str) {
            Some(said) => json!(without_time(said)),
            None => wanted.get("stdoutSha256").cloned().unwrap_or_default(),
        };
        score.compare(format!("{name}#{key}"), &found, &wanted);
    }
}

/// A message without its timestamp, and without the name of the missing CRD, which upstream picks
/// at random.
fn without_time(message: &str) -> String {
    let message = message.trim_end();
    let message = match message.split_once(' ') {
        Some((day, rest)) if day.contains('/') && day.starts_with("20") => {
            rest.split_once(' ').map_or(rest, |(_, rest)| rest)
        }
        _ => message,
    };
    match (message.find("couldn't find "), message.find(" in bundle. found: ")) {
        (Some(from), Some(to)) if from < to => {
            format!("{}couldn't find one{}", &message[..from], &message[to..])
        }
        _ => message.to_owned(),
    }
}
