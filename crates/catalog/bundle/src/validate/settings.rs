//! Settings of validators, and the files that some settings name.

use super::community::{IndexContent, IndexFile};
use crate::decode_error::TypeError;
use mainstay_gocompat::io_error_text;
use mainstay_schema::gojson::{self, DeclaredStruct, DeclaredType};
use serde_json::Value;
use std::{
    fs::File,
    io::Read,
    path::{Path, PathBuf},
};

/// The largest file that is read, in bytes.
const LIMIT: u64 = 4 << 20;

/// The version of upstream's validation library.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LibraryVersion {
    /// 0.45.
    #[default]
    V045,
    /// 0.34, as in operator-sdk 1.42. It does not check names of bundles with a release and related
    /// images. It warns of permissions for all resources that moved in Kubernetes 1.25. In a
    /// manifest list it takes entries that are not images as platforms.
    V034,
}

/// The settings of validators.
#[derive(Clone, Debug, Default)]
pub struct ValidatorSettings {
    /// The library whose findings are returned.
    pub library: LibraryVersion,
    /// The Kubernetes version that the bundle must support (`k8s-version`).
    pub kubernetes: Option<String>,
    /// The Dockerfile of the index image (`index-path`).
    pub index: Option<IndexFile>,
    /// The container tool that inspects images (`container-tools`); empty for the default.
    pub container_tool: String,
    /// Categories that replace the standard ones, or why they cannot be read.
    pub categories: Option<Result<Vec<String>, CategoriesError>>,
}

/// Why a categories file cannot be used, in upstream's words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CategoriesError {
    /// The path of the file cannot be made absolute.
    #[error("finding category file: {reason}")]
    FindFile {
        /// The message of the operating system.
        reason: String,
    },
    /// The path is a folder, or another entry that is not a file.
    #[error("reading category file: read {}: is a directory", path.display())]
    NotAFile {
        /// The absolute path.
        path: PathBuf,
    },
    /// The file cannot be read.
    #[error("reading category file: open {}: {reason}", path.display())]
    ReadFile {
        /// The absolute path.
        path: PathBuf,
        /// The message of the operating system.
        reason: String,
    },
    /// The file is not JSON.
    #[error("unmarshaling category file: {0}")]
    ParseJson(mainstay_schema::strict::JsonError),
    /// The file does not list texts.
    #[error("unmarshaling category file: {0}")]
    Decode(TypeError),
}

static CATEGORIES: DeclaredStruct = DeclaredStruct {
    name: "categories",
    spelled: "internal.categories",
    fields: &[("categories", DeclaredType::List(&DeclaredType::Text))],
};

impl ValidatorSettings {
    /// Sets a value given as `key=value`. Unknown keys and empty values are ignored.
    pub fn set(&mut self, key: &str, value: &str) {
        if value.is_empty() {
            return;
        }
        match key {
            "k8s-version" => self.kubernetes = Some(value.to_owned()),
            "index-path" => self.index = Some(index(value)),
            "container-tools" => self.container_tool = value.to_lowercase(),
            _ => {}
        }
    }

    /// Reads the categories from a file: `{"categories": ["…"]}`.
    pub fn categories_from(&mut self, path: &Path) {
        self.categories = Some(categories(path));
    }
}

fn read(path: &Path) -> Result<Vec<u8>, std::io::Error> {
    let mut bytes = Vec::new();
    File::open(path)?.take(LIMIT).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The Dockerfile of an index image.
fn index(path: &str) -> IndexFile {
    let location = Path::new(path);
    let content = match std::fs::metadata(location) {
        Err(error) => IndexContent::Missing(format!("stat {path}: {}", io_error_text(&error))),
        Ok(found) if found.is_dir() => IndexContent::Folder,
        Ok(found) if !found.is_file() => {
            IndexContent::Unreadable(format!("open {path}: not a file"))
        }
        Ok(_) => match read(location) {
            Ok(bytes) => IndexContent::Text(String::from_utf8_lossy(&bytes).into_owned()),
            Err(error) => {
                IndexContent::Unreadable(format!("open {path}: {}", io_error_text(&error)))
            }
        },
    };
    IndexFile { path: path.to_owned(), content }
}

fn categories(path: &Path) -> Result<Vec<String>, CategoriesError> {
    let path = std::path::absolute(path)
        .map_err(|error| CategoriesError::FindFile { reason: io_error_text(&error) })?;
    if std::fs::metadata(&path).is_ok_and(|found| !found.is_file()) {
        return Err(CategoriesError::NotAFile { path });
    }
    let bytes = read(&path)
        .map_err(|error| CategoriesError::ReadFile { path, reason: io_error_text(&error) })?;
    let parsed = mainstay_schema::strict::parse(&bytes).map_err(CategoriesError::ParseJson)?;
    let value: Value = parsed.value;
    gojson::check_struct(&value, &CATEGORIES)
        .map_err(|mismatch| CategoriesError::Decode(mismatch.reason))?;
    let texts = super::csv_fields::texts(&value, "categories");
    Ok(texts.map(str::to_owned).collect())
}
