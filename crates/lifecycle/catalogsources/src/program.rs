//! What a Pod would serve as a catalog, told by what it says that it runs.
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
use mainstay_catalog::Files;
use mainstay_images::{CatalogPlace, within};
use mainstay_object::{NamespacedName, Object};
use serde_json::Value;
use std::collections::BTreeMap;

/// Where a catalog server has its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Program {
    /// Files of `ConfigMaps` below a folder.
    Files(String, Vec<Mount>),
    /// A ConfigMap with lists of packages, versions and definitions.
    Lists(NamespacedName),
    /// An image: in this place, or where the image says.
    Image(String, Option<CatalogPlace>),
}

/// A ConfigMap that is mounted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    pub(crate) config_map: String,
    /// Where; without a slash in front.
    path: String,
    /// The keys that are mounted and their files, if these are not all.
    items: Option<Vec<(String, String)>>,
    /// The one file that is mounted, instead of the folder.
    only: Option<String>,
}

/// What a Pod serves cannot be read from here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ProgramError {
    /// The Pod has no container.
    #[error("it has no container")]
    NoContainer,
    /// The program is no catalog server that is known.
    #[error("it runs `{command}`, which is no catalog server that is known")]
    UnknownServer {
        /// The program with its arguments.
        command: String,
    },
    /// The Pod lacks a volume that is mounted.
    #[error("it has no volume {volume}")]
    NoVolume {
        /// The volume.
        volume: String,
    },
    /// The catalog is in a volume without content here.
    #[error("/{folder} is in the volume {volume}, whose content only a node that runs pods has")]
    NodeVolume {
        /// The folder of the catalog.
        folder: String,
        /// The volume.
        volume: String,
    },
}

impl Program {
    /// What the container of a Pod serves that listens on `port`; its first one, if none says that it
    /// does.
    ///
    /// # Errors
    /// That is no catalog that can be read from here.
    pub(crate) fn of(pod: &Object, port: Option<&Value>) -> Result<Self, ProgramError> {
        let containers = pod.array(&["spec", "containers"]);
        let listens = |container: &&Value| {
            items(container, "ports")
                .any(|entry| Some(&entry["containerPort"]) == port || Some(&entry["name"]) == port)
        };
        let container = containers.iter().find(listens).or(containers.first());
        let container = container.ok_or(ProgramError::NoContainer)?;
        let image = container["image"].as_str().unwrap_or_default();
        let words: Vec<&str> = items(container, "command")
            .chain(items(container, "args"))
            .filter_map(Value::as_str)
            .collect();
        if words.is_empty() {
            return Ok(Self::Image(image.to_owned(), None));
        }
        let words = started(&words);
        if let Some(of) = config_map(&words, pod.namespace()) {
            return Ok(Self::Lists(of));
        }
        let place = CatalogPlace::served(&words, text(container, "workingDir"))
            .ok_or_else(|| ProgramError::UnknownServer { command: words.join(" ") })?;
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
                volume.ok_or_else(|| ProgramError::NoVolume { volume: name.to_owned() })?;
            if !volume["emptyDir"].is_null() {
                if let Some((image, from)) = copied(pod, folder) {
                    return Ok(Self::Image(image, Some(CatalogPlace::Folder(from))));
                }
                continue;
            }
            let sources = std::iter::once(volume).chain(items(&volume["projected"], "sources"));
            let maps: Vec<&Value> =
                sources.map(|source| &source["configMap"]).filter(|map| !map.is_null()).collect();
            if maps.is_empty() {
                let (folder, volume) = (folder.clone(), name.to_owned());
                return Err(ProgramError::NodeVolume { folder, volume });
            }
            for map in maps {
                let items = map["items"].as_array().map(|all| {
                    let item = |item: &Value| {
                        (text(item, "key").to_owned(), text(item, "path").to_owned())
                    };
                    all.iter().map(item).collect()
                });
                let only = mount["subPath"].as_str().map(within);
                let (config_map, path) = (text(map, "name").to_owned(), path.clone());
                mounts.push(Mount { config_map, path, items, only });
            }
        }
        if mounts.is_empty() {
            return Ok(Self::Image(image.to_owned(), Some(place)));
        }
        Ok(Self::Files(folder.clone(), mounts))
    }
}

/// The files below a folder that `ConfigMaps` bring, by their paths in it.
pub(crate) fn files(folder: &str, mounts: &[(&Mount, Object)]) -> Files {
    let mut all = BTreeMap::new();
    for (mount, map) in mounts {
        for (key, bytes) in contents(map) {
            let path = match &mount.items {
                None => Some(key.as_str()),
                Some(items) => items.iter().find(|item| item.0 == key).map(|item| item.1.as_str()),
            };
            let Some(path) = path.map(within) else { continue };
            let path = match &mount.only {
                None => format!("{}/{path}", mount.path),
                // Mounted under the name of the mount itself.
                Some(only) if *only == path => mount.path.clone(),
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

/// What the keys of a ConfigMap hold.
fn contents(map: &Object) -> Vec<(String, Vec<u8>)> {
    let entries = |field: &str| map.get(&[field]).and_then(Value::as_object).into_iter().flatten();
    let texts = entries("data")
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.as_bytes().to_vec())));
    let bytes = entries("binaryData")
        .filter_map(|(key, value)| Some((key.clone(), STANDARD.decode(value.as_str()?).ok()?)));
    texts.chain(bytes).collect()
}

/// The words of the program itself, where a shell starts it.
fn started<'w>(words: &[&'w str]) -> Vec<&'w str> {
    let is_shell = |word: &str| matches!(word.rsplit('/').next(), Some("sh" | "bash" | "ash"));
    let line = match words {
        [shell, "-c", line, ..] if is_shell(shell) => *line,
        // The image's own program is told what to do.
        ["serve" | "registry", ..] => {
            return std::iter::once("opm").chain(words.iter().copied()).collect();
        }
        _ => return words.to_vec(),
    };
    let last = line.rsplit("&&").next().unwrap_or_default();
    let words = last.split_whitespace().skip_while(|word| *word == "exec");
    words.map(|word| word.trim_matches(['\'', '"'])).collect()
}

/// The ConfigMap that a program serves which serves one.
fn config_map(words: &[&str], namespace: &str) -> Option<NamespacedName> {
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

/// The image and its folder that an init container copies to a folder, as those of catalogs do.
fn copied(pod: &Object, to: &str) -> Option<(String, String)> {
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
    use mainstay_catalog::Source;
    use serde_json::json;

    fn pod(container: &Value, more: &Value) -> Object {
        let mut spec = more.clone();
        spec["containers"] = json!([{"name": "helper", "image": "h"}, container]);
        let metadata = json!({"name": "p", "namespace": "ns"});
        Object::from_value(json!({"metadata": metadata, "spec": spec})).unwrap()
    }

    fn program(mut container: Value, more: &Value) -> Result<Program, ProgramError> {
        container["ports"] = json!([{"name": "grpc", "containerPort": 50051}]);
        container["image"] = "i:1".into();
        let by_number = Program::of(&pod(&container, more), Some(&json!(50051)));
        let by_name = Program::of(&pod(&container, more), Some(&json!("grpc")));
        assert_eq!(by_number, by_name);
        by_number
    }

    #[test]
    fn command_of_the_listening_container_locates_the_catalog() {
        let of_image = |place| Ok(Program::Image("i:1".to_owned(), place));
        let folder = |path: &str| of_image(Some(CatalogPlace::Folder(path.to_owned())));
        let lists = |namespace, name| Ok(Program::Lists(NamespacedName::new(namespace, name)));
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
                Err(ProgramError::UnknownServer { command: "sleep 1".to_owned() }),
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
        let Ok(Program::Files(folder, mounts)) = program(container, &more) else { panic!() };
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
            Program::Image("c:1".to_owned(), Some(CatalogPlace::Folder("configs".to_owned())));
        assert_eq!(program(container, &more), Ok(wanted));
    }
}
