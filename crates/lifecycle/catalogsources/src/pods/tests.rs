//! Catalog pods: the objects, against recorded ones, and the selection of pods to delete.

use super::*;
use mainstay_api::{ExtractContent, GrpcPodConfig, SourceType};

fn source(name: &str, image: &str) -> CatalogSource {
    let mut source = CatalogSource::new("c217", name);
    source.spec.source_type = SourceType::Grpc;
    source.spec.image = image.to_owned();
    source
}

fn of(source: &CatalogSource) -> CatalogObjects {
    catalog_objects(source, None, &BTreeMap::new(), &CatalogPods::default()).unwrap()
}

fn config(edit: impl FnOnce(&mut GrpcPodConfig)) -> CatalogSource {
    let mut source = source("cat", "registry.invalid/catalog@sha256:1");
    edit(source.spec.grpc_pod_config.insert(GrpcPodConfig::default()));
    source
}

#[test]
fn hashes_of_recorded_pods_and_services_are_reproduced() {
    let image = "registry.invalid/catalog:2";
    let mut legacy = source("legacy", image);
    legacy.spec.grpc_pod_config = Some(GrpcPodConfig {
        security_context_config: "legacy".to_owned(),
        ..GrpcPodConfig::default()
    });
    let mut restricted = source("restricted", image);
    restricted.spec.grpc_pod_config = Some(GrpcPodConfig {
        security_context_config: "restricted".to_owned(),
        ..GrpcPodConfig::default()
    });
    let mut plain = source("plain", image);
    plain.spec.secrets = vec!["pull-a".to_owned(), "pull-b".to_owned()];
    let mut extract = source("extract", image);
    let content = ExtractContent { catalog_dir: "/configs".to_owned(), cache_dir: String::new() };
    extract.spec.grpc_pod_config =
        Some(GrpcPodConfig { extract_content: Some(content), ..GrpcPodConfig::default() });
    for (source, pod, service) in [
        (
            source("cat", "registry.invalid/catalog:1"),
            "93KA4NALoIGKKCRp0WHJvKbyPuhJZIsakdQ54Q",
            "6eq0PqHqOP4OCC98EjWI1EyhhK0m880EIA3lob",
        ),
        (
            legacy,
            "3JqwwwxBVxQkDU7kPKVi8KtYMwK7wIdFzGMCRU",
            "9IeRRqdkpJiGHUBAYCdZGBoA3YbQe0zGTuDHou",
        ),
        (
            restricted,
            "Tdg1jGVhhTic7LuF70ECup6rlwsRmo13KX7zu",
            "4kIVYujd5YUZr9VompQgIyLUvsbynN0AmAieNd",
        ),
        (plain, "cUHCaXrqSlCLx1fhJLmACpgdV2SLJwNwLCe7js", "Lg1McRosJYsgnlHgVABX5MvfXswrMOZeryMU4"),
        (
            extract,
            "bpEDW4leJtnr09xKY4trZNrgfkz9uPp6L45nuu",
            "49JRaSfESIZUPKmD3qkoXoZPsceQyzbZNrDE7C",
        ),
    ] {
        let wanted = of(&source);
        assert_eq!(wanted.pod.label(names::POD_SPEC_HASH), Some(pod), "{}", source.metadata.name);
        assert_eq!(wanted.service.label(names::SERVICE_SPEC_HASH), Some(service));
    }
    let mut map = CatalogSource::new("c219", "cat");
    map.spec.source_type = SourceType::ConfigMap;
    map.spec.config_map = "content".to_owned();
    let wanted =
        catalog_objects(&map, Some("2660"), &BTreeMap::new(), &CatalogPods::default()).unwrap();
    assert_eq!(
        wanted.pod.label(names::POD_SPEC_HASH),
        Some("bDoxNu6hzuagAw0SftsYea2AvJVmRq7g68gRDF")
    );
    assert_eq!(
        wanted.service.label(names::SERVICE_SPEC_HASH),
        Some("9EFw2rIrCKvrKCI4nsVnCDV2shtI3GnlPvCr5r")
    );
    assert_eq!(wanted.pod.label(CONFIG_MAP_VERSION_LABEL), Some("2660"));
}

#[test]
fn grpc_pod_config_overrides_the_pods_defaults() {
    let spec = |source: &CatalogSource| of(source).pod.to_value()["spec"].clone();
    let usual = spec(&source("cat", "registry.invalid/catalog:1"));
    // shows CAT-40 AT-CAT-06
    assert_eq!(usual["nodeSelector"], json!({"kubernetes.io/os": "linux"}));
    // shows CAT-06 AT-CAT-05
    assert_eq!(usual["containers"][0]["imagePullPolicy"], "Always");
    // shows CAT-40 AT-CAT-06
    assert!(usual.get("tolerations").is_none() && usual.get("priorityClassName").is_none());
    let mut configured = config(|config| {
        config.node_selector = BTreeMap::from([("disk".to_owned(), "fast".to_owned())]);
        config.priority_class_name = Some("system-node-critical".to_owned());
        config.tolerations = vec![json!({"operator": "Exists"})];
        config.affinity = Some(json!({"nodeAffinity": {}}));
        config.memory_target = Some(json!("1024Mi"));
    });
    let custom = spec(&configured);
    // shows CAT-41 E059
    assert_eq!(custom["nodeSelector"], json!({"disk": "fast"}));
    // shows CAT-42 E059
    assert_eq!(custom["priorityClassName"], "system-node-critical");
    // shows CAT-44 E059
    assert_eq!(custom["tolerations"], json!([{"operator": "Exists"}]));
    let container = &custom["containers"][0];
    // shows CAT-06 AT-CAT-05
    assert_eq!(container["imagePullPolicy"], "IfNotPresent");
    // shows K16
    assert_eq!(container["resources"]["requests"]["memory"], "1Gi");
    assert_eq!(container["env"][0]["value"], "1GiB");
    let class = "system-cluster-critical".to_owned();
    configured.metadata.annotations.insert(names::PRIORITY_CLASS.to_owned(), class.clone());
    // shows CAT-43 AT-CAT-07
    assert_eq!(spec(&configured)["priorityClassName"], class);
    let cached = config(|config| {
        config.extract_content = Some(ExtractContent {
            catalog_dir: "/configs".to_owned(),
            cache_dir: "/cache".to_owned(),
        });
    });
    let cached = spec(&cached);
    assert_eq!(
        cached["containers"][0]["args"],
        json!(["serve", "/extracted-catalog/catalog", "--cache-dir=/extracted-catalog/cache"])
    );
    assert_eq!(cached["volumes"].as_array().unwrap().len(), 2);
    let labels = BTreeMap::from([(POD_SECURITY_LABEL.to_owned(), "restricted".to_owned())]);
    let source = source("cat", "registry.invalid/catalog:1");
    let wanted = catalog_objects(&source, None, &labels, &CatalogPods::default()).unwrap();
    // shows K16
    assert_eq!(wanted.pod.to_value()["spec"]["securityContext"]["runAsUser"], RESTRICTED_USER);
}

#[test]
fn content_is_extracted_with_or_without_a_cache_at_each_security_level() {
    for (cache, level) in
        [("", ""), ("", "legacy"), ("", "restricted"), ("/cache", ""), ("/cache", "restricted")]
    {
        let source = config(|config| {
            config.security_context_config = level.to_owned();
            config.extract_content = Some(ExtractContent {
                catalog_dir: "/configs".to_owned(),
                cache_dir: cache.to_owned(),
            });
        });
        let spec = of(&source).pod.to_value()["spec"].clone();
        let main = &spec["containers"][0];
        let mounts = |container: &Value| -> Vec<String> {
            let all = container["volumeMounts"].as_array().unwrap().iter();
            all.map(|mount| mount["mountPath"].as_str().unwrap().to_owned()).collect()
        };
        let inits = spec["initContainers"].as_array().unwrap();
        assert_eq!(
            [&inits[0]["name"], &inits[1]["name"]],
            ["extract-utilities", "extract-content"]
        );
        assert_eq!(inits[1]["image"], source.spec.image, "what is copied is the catalog's");
        assert_ne!(main["image"], source.spec.image, "who serves it is not");
        let copied = inits[1]["args"].as_array().unwrap();
        // shows K16
        assert_eq!(copied.len(), if cache.is_empty() { 2 } else { 4 });
        assert_eq!(copied[0], "--catalog.from=/configs");
        let wanted: &[&str] = if cache.is_empty() {
            &["/tmp/", "/extracted-catalog"]
        } else {
            &["/extracted-catalog"]
        };
        assert_eq!(mounts(main), wanted);
        assert_eq!(mounts(&inits[1]), ["/utilities", "/extracted-catalog"]);
        for container in inits.iter().chain([main]) {
            assert_eq!(container["securityContext"]["readOnlyRootFilesystem"], true);
            let locked = container["securityContext"]["allowPrivilegeEscalation"] == false;
            assert_eq!(locked, level == "restricted", "{level} {}", container["name"]);
        }
    }
}

#[test]
fn priority_class_annotation_overrides_the_field_unless_it_is_empty() {
    for (field, annotation, wanted) in [
        (None, None, None),
        (Some("field"), None, Some("field")),
        (None, Some("annotation"), Some("annotation")),
        (Some("field"), Some("annotation"), Some("annotation")),
        (Some("field"), Some(""), Some("field")),
        (None, Some(""), None),
    ] {
        let mut source = config(|config| config.priority_class_name = field.map(str::to_owned));
        let annotation =
            annotation.map(|class| (names::PRIORITY_CLASS.to_owned(), class.to_owned()));
        source.metadata.annotations.extend(annotation);
        let spec = of(&source).pod.to_value()["spec"].clone();
        // shows K16
        assert_eq!(spec.get("priorityClassName").and_then(Value::as_str), wanted);
    }
}

#[test]
fn one_catalog_pod_serves_and_all_others_are_deleted() {
    let source = source("cat", "registry.invalid/catalog:1");
    let wanted = of(&source).pod;
    let good = CatalogPod {
        hash: wanted.label(names::POD_SPEC_HASH).unwrap().to_owned(),
        owner: "u".to_owned(),
        ..CatalogPod::default()
    };
    let other = CatalogPod { hash: "x".to_owned(), ..good.clone() };
    let ended = CatalogPod { ended: true, ..good.clone() };
    let leaving = CatalogPod { terminating: true, ..good.clone() };
    let lost = CatalogPod { terminating: true, ended: true, ..good.clone() };
    for (pods, gone, make) in [
        (vec![], vec![], true),
        (vec![good.clone()], vec![], false),
        (vec![good.clone(), good.clone()], vec![1], false),
        (vec![other.clone(), good], vec![0], false),
        (vec![other], vec![0], true),
        (vec![ended], vec![0], true),
        (vec![leaving], vec![], true),
        (vec![lost], vec![0], true),
    ] {
        let pods: Vec<(usize, CatalogPod)> = pods.into_iter().enumerate().collect();
        let (deleted, created) = select_pods(&wanted, "u", &pods);
        let deleted: Vec<usize> = deleted.iter().map(|pod| pod.0).collect();
        // shows K15
        assert_eq!((deleted, created), (gone, make), "{pods:?}");
    }
}

#[test]
fn security_context_follows_the_pod_config_or_the_namespaces_pod_security_level() {
    for (asked, enforced, restricted) in [
        ("", None, false),
        ("", Some("baseline"), false),
        ("", Some("restricted"), true),
        ("legacy", Some("restricted"), false),
        ("restricted", None, true),
        ("restricted", Some("baseline"), true),
    ] {
        let source = config(|config| config.security_context_config = asked.to_owned());
        let labels = enforced
            .map(|level| (POD_SECURITY_LABEL.to_owned(), level.to_owned()))
            .into_iter()
            .collect();
        let pod = catalog_objects(&source, None, &labels, &CatalogPods::default()).unwrap().pod;
        let spec = pod.to_value()["spec"].clone();
        // shows K06
        assert_eq!(spec.get("securityContext").is_some(), restricted, "{asked} {enforced:?}");
        let container = &spec["containers"][0]["securityContext"];
        assert_eq!(container["allowPrivilegeEscalation"] == false, restricted);
        assert_eq!(container["capabilities"] == json!({"drop": ["ALL"]}), restricted);
    }
}

#[test]
fn memory_target_is_a_whole_binary_quantity() {
    for (given, wanted) in
        [("50Mi", "50Mi"), ("1024Mi", "1Gi"), ("100M", "100000000"), ("2048", "2Ki")]
    {
        assert_eq!(binary_quantity(&json!(given)), wanted);
    }
}

#[test]
fn image_digest_of_a_pod_comes_from_its_status_or_its_annotation() {
    let image = BTreeSet::from(["sha256:index".to_owned(), "sha256:config".to_owned()]);
    let status = |id: &str| json!({"containerStatuses": [{"imageID": id}]});
    let extracts = |id: &str| {
        json!({
            "initContainerStatuses": [{"imageID": "r/tools@sha256:tools"}, {"imageID": id}],
            "containerStatuses": [{"imageID": "r/opm@sha256:opm"}],
        })
    };
    for (status, written, runs) in [
        (status("registry.invalid/catalog@sha256:index"), None, Some(true)),
        (status("docker-pullable://r/catalog@sha256:index"), None, Some(true)),
        (status("docker://sha256:config"), None, Some(true)),
        (status("sha256:config"), Some("sha256:other"), Some(true)),
        (status("r/catalog@sha256:other"), Some("sha256:index"), Some(false)),
        (extracts("r/catalog@sha256:index"), None, Some(true)),
        (extracts("r/catalog@sha256:other"), None, Some(false)),
        // The pod has not started, or its status has no digest.
        (json!({}), None, None),
        (status(""), None, None),
        (status("r/catalog:v1"), None, None),
        (status("r/catalog:v1"), Some("sha256:index"), Some(true)),
        (status("r/catalog:v1"), Some("sha256:other"), Some(false)),
    ] {
        let annotations: BTreeMap<&str, &str> =
            written.map(|digest| (IMAGE_ANNOTATION, digest)).into_iter().collect();
        let pod = json!({"metadata": {"name": "p", "annotations": annotations}, "status": status});
        let pod = Object::from_value(pod).unwrap();
        assert_eq!(runs_image(&pod, &image), runs, "{pod:?}");
    }
}
