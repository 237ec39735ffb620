//! Default catalogs of a cluster: those of its profile, or manifests in a folder.

use mainstay_cause::{Cause, FileLocation};
use mainstay_command::profile::Profile;
use mainstay_gocompat::io_error_text;
use mainstay_object::Object;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The default catalogs of a cluster, as its `OperatorHub` enables them.
#[derive(Clone, Debug, PartialEq)]
pub enum DefaultCatalogs {
    /// No default catalogs, and no `OperatorHub`.
    None,
    /// The catalogs of the profile's distribution.
    Profile,
    /// These `CatalogSources`.
    Given(Vec<Object>),
}

impl DefaultCatalogs {
    /// Checks `--default-sources`: `none`, `profile` or a folder. Without the flag, the OpenShift
    /// profile has its distribution's catalogs, and the standard profile has none.
    pub(crate) fn check(text: Option<&str>, profile: Profile) -> Result<Self, Cause> {
        match text {
            None if profile == Profile::Openshift => Ok(Self::Profile),
            None | Some("none") => Ok(Self::None),
            Some("profile") => Ok(Self::Profile),
            Some(folder) => read(Path::new(folder)).map(Self::Given),
        }
    }
}

/// Reads the manifests in a folder.
fn read(folder: &Path) -> Result<Vec<Object>, Cause> {
    let refuse = |file: &Path, why: String| {
        Cause::new("--default-sources").at(FileLocation::file(file)).because(Cause::new(why)).remedy(
            "write `none`, `profile`, or the folder of manifests of CatalogSources, such as ./defaults",
        )
    };
    let entries =
        std::fs::read_dir(folder).map_err(|error| refuse(folder, io_error_text(&error)))?.flatten();
    let mut files: Vec<PathBuf> =
        entries.map(|entry| entry.path()).filter(|path| is_manifest(path)).collect();
    files.sort_unstable();
    let mut sources: BTreeMap<String, Object> = BTreeMap::new();
    for file in &files {
        let bytes = std::fs::read(file).map_err(|error| refuse(file, io_error_text(&error)))?;
        for document in mainstay_yaml::documents(&bytes, &mainstay_yaml::Options::default()) {
            let document = document.map_err(|error| refuse(file, error.to_string()))?;
            let object = Object::from_value(document.value).unwrap_or_default();
            if object.kind() != "CatalogSource" || object.name().is_empty() {
                let what = "a document is not a CatalogSource with a name";
                return Err(refuse(file, what.to_owned()));
            }
            let name = object.name().to_owned();
            if sources.insert(name.clone(), object).is_some() {
                return Err(refuse(file, format!("there are two CatalogSources named `{name}`")));
            }
        }
    }
    if sources.is_empty() {
        let what = "the folder has no manifests: no file ends with .yaml, .yml or .json";
        return Err(refuse(folder, what.to_owned()));
    }
    Ok(sources.into_values().collect())
}

fn is_manifest(file: &Path) -> bool {
    let suffix = file.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    matches!(suffix, "yaml" | "yml" | "json") && file.is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_catalogs_follow_from_the_profile_unless_a_flag_names_others() {
        for (text, profile, wanted) in [
            (None, Profile::Standard, DefaultCatalogs::None),
            (None, Profile::Openshift, DefaultCatalogs::Profile),
            (Some("none"), Profile::Openshift, DefaultCatalogs::None),
            (Some("profile"), Profile::Standard, DefaultCatalogs::Profile),
        ] {
            // shows HUB-04
            assert_eq!(
                DefaultCatalogs::check(text, profile).unwrap(),
                wanted,
                "{text:?} {profile:?}"
            );
        }
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text).unwrap();
        };
        let check = || {
            let checked = DefaultCatalogs::check(folder.path().to_str(), Profile::Standard);
            checked.map_err(|cause| cause.to_string())
        };
        assert!(check().unwrap_err().contains("the folder has no manifests"));
        write(
            "a.yaml",
            "kind: CatalogSource\nmetadata: {name: a}\n---\nkind: CatalogSource\nmetadata: {name: b}\n",
        );
        write("notes.txt", "none of it");
        let DefaultCatalogs::Given(all) = check().unwrap() else { panic!("they are given") };
        assert_eq!(all.iter().map(Object::name).collect::<Vec<_>>(), ["a", "b"]);
        write("b.json", r#"{"kind": "CatalogSource", "metadata": {"name": "b"}}"#);
        assert!(check().unwrap_err().contains("two CatalogSources named `b`"));
        write("b.json", r#"{"kind": "ConfigMap", "metadata": {"name": "c"}}"#);
        let error = check().unwrap_err();
        assert!(error.contains("b.json") && error.contains("is not a CatalogSource"), "{error}");
    }
}
