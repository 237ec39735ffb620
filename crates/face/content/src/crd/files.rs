//! CustomResourceDefinitions in files and bundle folders.

use mainstay_cause::{Cause, FileLocation};
use mainstay_command::exit::CommandFailure;
use mainstay_command::io::CommandIo;
use mainstay_command::text::escape_controls;
use mainstay_crdsafety::{Crd, CrdPathStep, Finding};
use mainstay_gocompat::io_error_text;
use mainstay_yaml::{Options, PathStep as YamlStep, documents, locate_all};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The largest size of a file: many times that of the largest bundles.
const MAX_FILE: u64 = 32 << 20;

/// The largest size of a CRD. An API server takes at most 3 MiB.
const MAX_CRD: usize = 4 << 20;

/// A CRD and its place.
#[derive(Debug)]
pub(super) struct CrdFile {
    pub(super) crd: Crd,
    /// The file as typed, or as found in a folder that was typed.
    pub(super) file: String,
    /// The line of the document, from 1.
    pub(super) line: usize,
    /// The text of the document.
    document: Rc<str>,
    /// The line in the file before the text of the document.
    lines_before: usize,
    /// The position in the `items` of a list.
    item: Option<usize>,
}

impl CrdFile {
    /// The place of the CRD in messages.
    pub(super) fn place(&self) -> FileLocation {
        FileLocation { line: self.line, ..FileLocation::file(&self.file) }
    }

    /// The line that each finding is about, or the nearest line that is still there. The text is read
    /// once for all of them.
    pub(super) fn lines_of(&self, findings: &[Finding]) -> Vec<usize> {
        let positions: Vec<_> =
            findings.iter().map(|finding| finding.position(&self.crd)).collect();
        let paths: Vec<_> = positions.iter().map(|steps| self.yaml_path(steps)).collect();
        let places = locate_all(&self.document, &paths).into_iter();
        places.map(|place| place.map_or(self.line, |(line, _)| self.lines_before + line)).collect()
    }

    /// The path of a node of the CRD in its document.
    fn yaml_path<'s>(&self, steps: &'s [CrdPathStep]) -> Vec<YamlStep<'s>> {
        let item = self.item.map(|item| [YamlStep::Field("items"), YamlStep::Item(item)]);
        let steps = steps.iter().map(|step| match step {
            CrdPathStep::Field(name) => YamlStep::Field(name),
            CrdPathStep::Item(at) => YamlStep::Item(*at),
        });
        item.into_iter().flatten().chain(steps).collect()
    }
}

/// The CRDs of the files that the command line names.
#[derive(Debug, Default)]
pub(super) struct CrdFiles {
    crds: BTreeMap<String, CrdFile>,
}

impl CrdFiles {
    /// Reads files and folders.
    ///
    /// # Errors
    /// A file cannot be read, is no YAML or JSON, or has no CRD; or two have the same name.
    pub(super) fn read(io: &CommandIo<'_>, arguments: &[String]) -> Result<Self, CommandFailure> {
        let mut found = Self::default();
        for argument in arguments {
            let path = io.folder.join(argument);
            if path.is_dir() {
                found.read_folder(&path, argument)?;
            } else {
                found.read_file(&path, argument)?;
            }
        }
        Ok(found)
    }

    /// The CRDs in the order of their names.
    pub(super) fn by_name(&self) -> impl Iterator<Item = (&str, &CrdFile)> {
        self.crds.iter().map(|(name, file)| (name.as_str(), file))
    }

    pub(super) fn get(&self, name: &str) -> Option<&CrdFile> {
        self.crds.get(name)
    }

    /// Reads the manifests of a bundle folder, or the files of any other folder.
    fn read_folder(&mut self, path: &Path, argument: &str) -> Result<(), CommandFailure> {
        let manifests = path.join("manifests");
        let (path, shown) = if manifests.is_dir() {
            (manifests, format!("{}/manifests", argument.trim_end_matches('/')))
        } else {
            (path.to_owned(), argument.trim_end_matches('/').to_owned())
        };
        let listed = fs::read_dir(&path).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let listed = listed.map_err(|error| {
            refuse(&shown, &io_error_text(&error), "name a folder that can be read")
        })?;
        let is_manifest = |path: &PathBuf| {
            let extension = path.extension().and_then(|extension| extension.to_str());
            matches!(extension, Some("yaml" | "yml" | "json"))
        };
        let paths = listed.into_iter().map(|entry| entry.path()).filter(is_manifest);
        let mut paths: Vec<PathBuf> = paths.filter(|path| path.is_file()).collect();
        paths.sort();
        let before = self.crds.len();
        for path in paths {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            self.add(&path, &format!("{shown}/{name}"))?;
        }
        if self.crds.len() == before {
            let remedy = "name a folder with manifests, such as a bundle folder";
            let what = "no file of the folder has a CustomResourceDefinition";
            return Err(refuse(&shown, what, remedy));
        }
        Ok(())
    }

    fn read_file(&mut self, path: &Path, argument: &str) -> Result<(), CommandFailure> {
        let kinds = self.add(path, argument)?;
        match kinds {
            None => Ok(()),
            Some(kinds) if kinds.is_empty() => {
                let remedy = "name a file with a CustomResourceDefinition";
                Err(refuse(argument, "the file has no document", remedy))
            }
            Some(kinds) => {
                let what =
                    format!("the file has no CustomResourceDefinition, but {}", kinds.join(", "));
                let remedy =
                    "name a file with a CustomResourceDefinition of apiextensions.k8s.io/v1";
                Err(refuse(argument, &what, remedy))
            }
        }
    }

    /// Adds the CRDs of a file. Without one, returns the kinds of its documents.
    fn add(&mut self, path: &Path, shown: &str) -> Result<Option<Vec<String>>, CommandFailure> {
        let text = read_text(path, shown)?;
        let mut kinds = Vec::new();
        let mut has_crd = false;
        for document in documents(text.as_bytes(), &Options::default()) {
            let document = document.map_err(|error| {
                let place = FileLocation {
                    line: error.line,
                    column: error.column,
                    ..FileLocation::file(shown)
                };
                let remedy = if error.fault.may_be_cut_off() {
                    "write the file again: it may have been cut off"
                } else {
                    "correct the YAML or JSON"
                };
                let cause = Cause::new(escape_controls(&error.fault.to_string())).at(place);
                CommandFailure::usage(cause.remedy(remedy))
            })?;
            let part: Rc<str> = text.get(document.bytes.clone()).unwrap_or_default().into();
            let lines_before =
                text.get(..document.bytes.start).unwrap_or_default().matches('\n').count();
            let is_list = document.value.get("items").is_some_and(Value::is_array);
            let objects = match &document.value {
                Value::Object(fields) if is_list => {
                    fields["items"].as_array().map(Vec::as_slice).unwrap_or_default()
                }
                value => std::slice::from_ref(value),
            };
            for (at, object) in objects.iter().enumerate() {
                let kind =
                    object.get("kind").and_then(Value::as_str).unwrap_or("an object without kind");
                if kind != "CustomResourceDefinition" {
                    kinds.push(escape_controls(kind));
                    continue;
                }
                has_crd = true;
                self.insert(
                    object,
                    CrdFile {
                        crd: read_crd(object, shown, document.line)?,
                        file: shown.to_owned(),
                        line: document.line,
                        document: Rc::clone(&part),
                        lines_before,
                        item: is_list.then_some(at),
                    },
                )?;
            }
        }
        kinds.sort();
        kinds.dedup();
        Ok((!has_crd).then_some(kinds))
    }

    fn insert(&mut self, object: &Value, file: CrdFile) -> Result<(), CommandFailure> {
        let name = file.crd.name().to_owned();
        if name.is_empty() {
            let cause =
                Cause::new("the CustomResourceDefinition has no metadata.name").at(file.place());
            return Err(CommandFailure::usage(cause.remedy("give it its name: PLURAL.GROUP")));
        }
        if file.document.len() > MAX_CRD && object.to_string().len() > MAX_CRD {
            let what =
                format!("CustomResourceDefinition {name} has more than {} MiB", MAX_CRD >> 20);
            let cause = Cause::new(escape_controls(&what)).at(file.place());
            return Err(CommandFailure::usage(
                cause.remedy("an API server takes at most 3 MiB: shorten it"),
            ));
        }
        if let Some(first) = self.crds.get(&name) {
            let what = format!("CustomResourceDefinition {name} is defined twice");
            let first = Cause::new("the first definition").at(first.place());
            let cause = Cause::new(escape_controls(&what)).at(file.place()).because(first);
            return Err(CommandFailure::usage(cause.remedy("remove one of the two")));
        }
        self.crds.insert(name, file);
        Ok(())
    }
}

fn read_crd(object: &Value, file: &str, line: usize) -> Result<Crd, CommandFailure> {
    Crd::from_value(object).map_err(|error| {
        let place = FileLocation { line, ..FileLocation::file(file) };
        let cause = Cause::new(escape_controls(&error.to_string())).at(place);
        CommandFailure::usage(
            cause.remedy("use a CustomResourceDefinition that an API server accepts"),
        )
    })
}

fn read_text(path: &Path, shown: &str) -> Result<String, CommandFailure> {
    let remedy = "name a file that can be read";
    let failed = |error: io::Error| refuse(shown, &io_error_text(&error), remedy);
    // A pipe or a device could block for ever.
    if !fs::metadata(path).map_err(failed)?.is_file() {
        return Err(refuse(shown, "this is no regular file", remedy));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(failed)?;
    file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_FILE {
        let what = format!("the file has more than {} MiB", MAX_FILE >> 20);
        return Err(refuse(shown, &what, "keep only the CustomResourceDefinitions in it"));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        refuse(shown, &format!("the file is not UTF-8: byte {at}"), "save it as UTF-8 text")
    })
}

fn refuse(file: &str, what: &str, remedy: &str) -> CommandFailure {
    CommandFailure::usage(Cause::new(what).at(FileLocation::file(file)).remedy(remedy))
}
