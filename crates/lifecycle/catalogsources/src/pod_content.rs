//! Pod content: the catalog that a Pod would serve, derived from its containers and volumes.
//!
//! ```text
//! opm serve DIR, registry-server … ─┬─ mounted ConfigMaps ──────────────► files
//!                                   ├─ emptyDir that an init container
//!                                   │  fills from a catalog's image ────► a folder of that image
//!                                   └─ neither ─────────────────────────► a place in its own image
//! configmap-server -c NAME -n NS ───────────────────────────────────────► a ConfigMap of lists
//! no command ───────────────────────────────────────────────────────────► what its image says
//! ```

use crate::config_map::{items, text};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use mainstay_catalog::MemorySource;
use mainstay_images::{CatalogPlace, within};
use mainstay_object::{NamespacedName, Object};
use serde_json::Value;
use std::collections::BTreeMap;

/// Where the content of a catalog pod is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PodContent {
    /// The files of mounted ConfigMaps below a folder.
    Files(String, Vec<Mount>),
    /// A ConfigMap catalog: lists of packages, ClusterServiceVersions and
    /// CustomResourceDefinitions.
    ConfigMap(NamespacedName),
    /// An image: at this place, or where the label of the image says.
    Image(String, Option<CatalogPlace>),
}

/// A mounted ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    pub(crate) config_map: String,
    /// The mount path without the leading slash.
    path: String,
    /// The mounted keys and their file names; none means all keys.
    items: Option<Vec<(String, String)>>,
    /// `subPath`: the only file that is mounted.
    sub_path: Option<String>,
}

/// Why the content of a Pod cannot be read in this process.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PodContentError {
    /// The Pod has no container.
    #[error("it has no container")]
    NoContainer,
    /// The command is no known catalog server.
    #[error("it runs `{command}`, which is no catalog server that is known")]
    UnknownServer {
        /// The command with its arguments.
        command: String,
    },
    /// The Pod lacks the volume of a mount.
    #[error("it has no volume {volume}")]
    NoVolume {
        /// The volume.
        volume: String,
    },
    /// The catalog is in a volume whose content exists only on a node.
    #[error("/{folder} is in the volume {volume}, whose content only a node that runs pods has")]
    NodeVolume {
        /// The folder of the catalog.
        folder: String,
        /// The volume.
        volume: String,
    },
}

impl PodContent {
    /// The content of the container that listens on `port`; of the first container if none has that
    /// port.
    ///
    /// # Errors
    /// The content cannot be read in this process.
    pub(crate) fn of(pod: &Object, port: Option<&Value>) -> Result<Self, PodContentError> {
        let containers = pod.array(&["spec", "containers"]);
        let listens = |container: &&Value| {
            items(container, "ports")
                .any(|entry| Some(&entry["containerPort"]) == port || Some(&entry["name"]) == port)
        };
        let container = containers.iter().find(listens).or(containers.first());
        let container = container.ok_or(PodContentError::NoContainer)?;
        let image = container["image"].as_str().unwrap_or_default();
        let words: Vec<&str> = items(container, "command")
            .chain(items(container, "args"))
            .filter_map(Value::as_str)
            .collect();
        if words.is_empty() {
            return Ok(Self::Image(image.to_owned(), None));
        }
        let words = server_command(&words);
        if let Some(config_map) = served_config_map(&words, pod.namespace()) {
            return Ok(Self::ConfigMap(config_map));
        }
        let place = CatalogPlace::served(&words, text(container, "workingDir"))
            .ok_or_else(|| PodContentError::UnknownServer { command: words.join(" ") })?;
        let CatalogPlace::Folder(folder) = &place else {
            return Ok(Self::Image(image.to_owned(), Some(place)));
        };
        let mut mounts = Vec::new();
        for mount in items(container, "volumeMounts") {
            let path = within(text(mount, "mountPath"));
            if !is_below(folder, &path) && !is_below(&path, folder) {
                continue;
            }
            let name = text(mount, "name");
            let volume =
                pod.array(&["spec", "volumes"]).iter().find(|volume| volume["name"] == *name);
            let volume =
                volume.ok_or_else(|| PodContentError::NoVolume { volume: name.to_owned() })?;
            if !volume["emptyDir"].is_null() {
                if let Some((image, from)) = copied_from_image(pod, folder) {
                    return Ok(Self::Image(image, Some(CatalogPlace::Folder(from))));
                }
                continue;
            }
            let sources = std::iter::once(volume).chain(items(&volume["projected"], "sources"));
            let maps: Vec<&Value> =
                sources.map(|source| &source["configMap"]).filter(|map| !map.is_null()).collect();
            if maps.is_empty() {
                let (folder, volume) = (folder.clone(), name.to_owned());
                return Err(PodContentError::NodeVolume { folder, volume });
            }
            for map in maps {
                let items = map["items"].as_array().map(|all| {
                    let item = |item: &Value| {
                        (text(item, "key").to_owned(), text(item, "path").to_owned())
                    };
                    all.iter().map(item).collect()
                });
                let sub_path = mount["subPath"].as_str().map(within);
                let (config_map, path) = (text(map, "name").to_owned(), path.clone());
                mounts.push(Mount { config_map, path, items, sub_path });
            }
        }
        if mounts.is_empty() {
            return Ok(Self::Image(image.to_owned(), Some(place)));
        }
        Ok(Self::Files(folder.clone(), mounts))
    }
}

/// The files of mounted ConfigMaps below a folder, by relative path.
pub(crate) fn files(folder: &str, mounts: &[(&Mount, Object)]) -> MemorySource {
    let mut all = BTreeMap::new();
    for (mount, map) in mounts {
        for (key, bytes) in config_map_entries(map) {
            let path = match &mount.items {
                None => Some(key.as_str()),
                Some(items) => items.iter().find(|item| item.0 == key).map(|item| item.1.as_str()),
            };
            let Some(path) = path.map(within) else { continue };
            let path = match &mount.sub_path {
                None => format!("{}/{path}", mount.path),
                // A `subPath` file has the mount path itself.
                Some(sub_path) if *sub_path == path => mount.path.clone(),
                Some(_) => continue,
            };
            if is_below(&path, folder) {
                let path = path[folder.len()..].trim_start_matches('/');
                all.insert(path.to_owned(), bytes);
            }
        }
    }
    all.into_iter().collect()
}

/// The keys of a ConfigMap with their bytes.
fn config_map_entries(map: &Object) -> Vec<(String, Vec<u8>)> {
    let entries = |field: &str| map.get(&[field]).and_then(Value::as_object).into_iter().flatten();
    let texts = entries("data")
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.as_bytes().to_vec())));
    let bytes = entries("binaryData")
        .filter_map(|(key, value)| Some((key.clone(), STANDARD.decode(value.as_str()?).ok()?)));
    texts.chain(bytes).collect()
}

/// The command of the server, without the shell that starts it.
fn server_command<'w>(words: &[&'w str]) -> Vec<&'w str> {
    let is_shell = |word: &str| matches!(word.rsplit('/').next(), Some("sh" | "bash" | "ash"));
    let line = match words {
        [shell, "-c", line, ..] if is_shell(shell) => *line,
        // Arguments without a command are for the entrypoint of the image.
        ["serve" | "registry", ..] => {
            return std::iter::once("opm").chain(words.iter().copied()).collect();
        }
        _ => return words.to_vec(),
    };
    let last = line.rsplit("&&").next().unwrap_or_default();
    let words = last.split_whitespace().skip_while(|word| *word == "exec");
    words.map(|word| word.trim_matches(['\'', '"'])).collect()
}

/// The ConfigMap that the command `configmap-server` serves.
fn served_config_map(words: &[&str], namespace: &str) -> Option<NamespacedName> {
    let (program, words) = words.split_first()?;
    if program.rsplit('/').next() != Some("configmap-server") {
        return None;
    }
    let flag = |names: [&str; 2]| {
        let at = words.iter().position(|word| names.contains(word));
        at.and_then(|at| words.get(at + 1)).copied().or_else(|| {
            words.iter().find_map(|word| {
                let (name, value) = word.split_once('=')?;
                names.contains(&name).then_some(value)
            })
        })
    };
    let name = flag(["-c", "--configMapName"])?;
    Some(NamespacedName::new(flag(["-n", "--configMapNamespace"]).unwrap_or(namespace), name))
}

/// The image and the folder in it that an init container copies to a folder, as in catalog pods
/// with `extractContent`.
fn copied_from_image(pod: &Object, to: &str) -> Option<(String, String)> {
    pod.array(&["spec", "initContainers"]).iter().find_map(|container| {
        let argument = |name: &str| {
            let mut words = items(container, "args").filter_map(Value::as_str);
            words.find_map(|word| word.strip_prefix(name)).map(within)
        };
        let from = argument("--catalog.from=")
            .filter(|_| argument("--catalog.to=").as_deref() == Some(to));
        Some((text(container, "image").to_owned(), from?))
    })
}

/// Whether a path is a folder or below it.
fn is_below(path: &str, folder: &str) -> bool {
    let rest = path.strip_prefix(folder);
    rest.is_some_and(|rest| folder.is_empty() || rest.is_empty() || rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainstay_catalog::FileSource;
    use serde_json::json;

    fn pod(container: &Value, more: &Value) -> Object {
        let mut spec = more.clone();
        spec["containers"] = json!([{"name": "helper", "image": "h"}, container]);
        let metadata = json!({"name": "p", "namespace": "ns"});
        Object::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
    }

    fn program(mut container: Value, more: &Value) -> Result<PodContent, PodContentError> {
        container["ports"] = json!([{"name": "grpc", "containerPort": 50051}]);
        container["image"] = "i:1".into();
        let by_number = PodContent::of(&pod(&container, more), Some(&json!(50051)));
        let by_name = PodContent::of(&pod(&container, more), Some(&json!("grpc")));
        assert_eq!(by_number, by_name);
        by_number
    }

    #[test]
    fn command_of_the_listening_container_locates_the_catalog() {
        let of_image = |place| Ok(PodContent::Image("i:1".to_owned(), place));
        let folder = |path: &str| of_image(Some(CatalogPlace::Folder(path.to_owned())));
        let lists =
            |namespace, name| Ok(PodContent::ConfigMap(NamespacedName::new(namespace, name)));
        for (container, wanted) in [
            (json!({}), of_image(None)),
            (json!({"command": ["/bin/opm"], "args": ["serve", "/configs"]}), folder("configs")),
            (json!({"args": ["serve", "/configs", "--cache-dir=/tmp"]}), folder("configs")),
            (
                json!({"command": ["sh", "-c", "mkdir -p /x && exec opm serve '/x' -p 50051"]}),
                folder("x"),
            ),
            (
                json!({"command": ["registry-server", "-d", "a.db"], "workingDir": "/d"}),
                of_image(Some(CatalogPlace::Database("d/a.db".to_owned()))),
            ),
            (
                json!({"command": ["configmap-server", "-c", "m", "-n", "there"]}),
                lists("there", "m"),
            ),
            (json!({"command": ["/bin/configmap-server", "--configMapName=m"]}), lists("ns", "m")),
            (
                json!({"command": ["sleep", "1"]}),
                Err(PodContentError::UnknownServer { command: "sleep 1".to_owned() }),
            ),
        ] {
            assert_eq!(program(container.clone(), &json!({})), wanted, "{container}");
        }
    }

    #[test]
    fn mounted_config_maps_are_files_at_their_mount_paths() {
        let container = json!({
            "command": ["opm", "serve", "/opt/olm"],
            "volumeMounts": [
                {"name": "all", "mountPath": "/opt/olm"},
                {"name": "some", "mountPath": "/opt/olm/more"},
                {"name": "all", "mountPath": "/opt/olm/one.json", "subPath": "b.json"},
                {"name": "elsewhere", "mountPath": "/opt/olmother"},
            ],
        });
        let more = json!({"volumes": [
            {"name": "all", "configMap": {"name": "m"}},
            {"name": "some", "projected": {"sources": [
                {"configMap": {"name": "n", "items": [{"key": "a.json", "path": "deep/c.json"}]}},
            ]}},
            {"name": "elsewhere", "secret": {"secretName": "s"}},
        ]});
        let Ok(PodContent::Files(folder, mounts)) = program(container, &more) else { panic!() };
        let map = Object::from_value(json!({
            "data": {"a.json": "1"}, "binaryData": {"b.json": "Mg=="},
        }))
        .unwrap();
        let mounted: Vec<_> = mounts.iter().map(|mount| (mount, map.clone())).collect();
        let files = files(&folder, &mounted);
        let found: Vec<_> = files.files().unwrap().into_iter().map(|file| file.path).collect();
        assert_eq!(found, ["a.json", "b.json", "more/deep/c.json", "one.json"]);
        for (path, content) in [("a.json", "1"), ("b.json", "2"), ("one.json", "2")] {
            assert_eq!(files.read(path, 9).unwrap(), content.as_bytes(), "{path}");
        }
    }

    #[test]
    fn content_copied_by_an_init_container_is_read_from_its_image() {
        let container = json!({
            "command": ["/bin/opm"], "args": ["serve", "/extracted/catalog", "--cache-dir=/tmp"],
            "volumeMounts": [{"name": "content", "mountPath": "/extracted"}],
        });
        let more = json!({
            "volumes": [{"name": "content", "emptyDir": {}}],
            "initContainers": [
                {"image": "tools:1", "command": ["cp"], "args": ["a", "b"]},
                {"image": "c:1", "args": ["--catalog.from=/configs", "--catalog.to=/extracted/catalog"]},
            ],
        });
        let wanted =
            PodContent::Image("c:1".to_owned(), Some(CatalogPlace::Folder("configs".to_owned())));
        assert_eq!(program(container, &more), Ok(wanted));
    }
}
