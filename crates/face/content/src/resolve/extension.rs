//! ClusterExtensions (OLM v1) in the output of `mainstay resolve`, as text and JSON.

use super::argument::ChangeArgument;
use super::preview::difference;
use super::text::{chain, differences, line, tree};
use super::{ResolveArguments, failure, value};
use crate::resolve::resolution::value as resolution_value;
use mainstay_cause::Cause;
use mainstay_command::exit::{CommandFailure, ExitStatus};
use mainstay_command::text::{count, escape_controls};
use mainstay_explain::{DependencyCheck, ExtensionResolution};
use mainstay_resolver::fixture::cause_json;
use mainstay_whatif::{
    CatalogOverrides, ClusterState, ExtensionEnd, ExtensionPath, ExtensionsWhatIf, FolderCache,
    WhatIfChange,
};
use serde_json::{Value, json};
use std::fmt::Write as _;

/// The result for all ClusterExtensions, and the `--what-if` arguments that apply to them.
#[derive(Default)]
pub(super) struct Extensions {
    what_if: ExtensionsWhatIf,
    changes: Vec<String>,
    /// Whether the arguments name ClusterExtensions: then the filters of their resolutions are shown.
    shows_filters: bool,
}

impl Extensions {
    /// Resolves the ClusterExtensions of a state.
    ///
    /// # Errors
    /// A folder does not exist, or a priority or change names an unknown catalog.
    pub(super) fn of(
        folders: &FolderCache,
        state: &ClusterState,
        overrides: &CatalogOverrides<'_>,
        changes: &[WhatIfChange],
        arguments: &ResolveArguments,
    ) -> Result<Self, CommandFailure> {
        let change_arguments: &[ChangeArgument] = &arguments.changes;
        let what_if = ExtensionsWhatIf::of(folders, state, overrides, changes)
            .map_err(|error| failure::extensions(&error, change_arguments))?;
        let used_changes = what_if.changes.iter().filter_map(|at| change_arguments.get(*at));
        let changes = used_changes.map(|change| change.text.clone()).collect();
        let shows_filters = !arguments.extension_names().is_empty();
        Ok(Self { what_if, changes, shows_filters })
    }

    /// Whether the state has no ClusterExtensions.
    pub(super) const fn is_empty(&self) -> bool {
        self.what_if.is_empty()
    }

    /// Notes about arguments that do not affect ClusterExtensions.
    pub(super) fn notes(&self, arguments: &ResolveArguments) -> Vec<String> {
        let others = arguments.changes.iter().map(|change| &change.text);
        let others: Vec<&str> =
            others.filter(|text| !self.changes.contains(text)).map(String::as_str).collect();
        let mut notes = Vec::new();
        if !others.is_empty() {
            let others = others.join(", ");
            notes
                .push(format!("{others}: applies to Subscriptions only, not to ClusterExtensions"));
        }
        if arguments.save.is_some() {
            notes.push("--save writes one namespace; ClusterExtensions are not saved".to_owned());
        }
        notes
    }

    /// Adds the result to a JSON value.
    pub(super) fn add_to(&self, value: &mut Value) {
        let path_value = |path: &ExtensionPath| {
            let mut value = path_value(path);
            if let Some(resolution) = self.filters(path) {
                value["resolution"] = resolution_value(&resolution);
            }
            value
        };
        value["extensions"] = self.what_if.before.iter().map(path_value).collect();
        if let (Some(after), Some(comparison)) = (&self.what_if.after, self.what_if.comparison()) {
            value["extensionsWhatIf"] = json!({
                "extensions": after.iter().map(path_value).collect::<Vec<_>>(),
                "difference": value::difference(&comparison),
            });
        }
    }

    /// The result as text.
    pub(super) fn text(&self, colour: bool) -> String {
        let mut out = String::new();
        for (name, folder, reason) in &self.what_if.unusable {
            let _ = writeln!(out, "catalog {} cannot be used", escape_controls(name));
            tree(&mut out, &failure::unusable_folder(folder, reason), "  ");
        }
        let paths = self.what_if.final_paths();
        let count_paths = |matches: &dyn Fn(&ExtensionPath) -> bool| {
            paths.iter().filter(|path| matches(path)).count()
        };
        let mut parts = Vec::new();
        for (paths_count, label) in [
            (count_paths(&|path| !path.hops.is_empty() && path.installed.is_none()), "to install"),
            (count_paths(&|path| !path.hops.is_empty() && path.installed.is_some()), "to upgrade"),
            (count_paths(&|path| path.hops.is_empty() && !path.fails()), "to keep"),
        ] {
            if paths_count > 0 {
                parts.push(format!("{paths_count} {label}"));
            }
        }
        let failures = count_paths(&ExtensionPath::fails);
        if failures > 0 {
            parts.push(count(failures, "failure"));
        }
        let _ = writeln!(out, "extensions: {}", parts.join(", "));
        for path in paths {
            path_text(&mut out, path, colour);
            for line in self.filters(path).iter().flat_map(ExtensionResolution::filter_lines) {
                let _ = writeln!(out, "    {}", escape_controls(&line));
            }
        }
        if let Some(comparison) = self.what_if.comparison() {
            let (rows, same) = differences(&comparison);
            let _ = writeln!(out, "  changes with {}", escape_controls(&self.changes.join(", ")));
            difference(&mut out, rows, same);
        }
        out
    }

    /// The first resolution of a path, if its filters are shown.
    fn filters(&self, path: &ExtensionPath) -> Option<ExtensionResolution> {
        let result = match (path.hops.first(), &path.end) {
            (Some(choice), _) => Ok(choice.clone()),
            (None, ExtensionEnd::Failed(failed)) => Err(Box::new(failed.failure.clone())),
            (None, ExtensionEnd::Best | ExtensionEnd::Stranded(_)) => return None,
        };
        self.shows_filters.then(|| ExtensionResolution {
            request: path.request.clone(),
            installed: path.installed.clone(),
            result,
            unread: Vec::new(),
            dependencies: DependencyCheck::NotChecked,
        })
    }

    /// The exit code, combined with that of the namespaces.
    pub(super) fn exit(&self, arguments: &ResolveArguments, exit: ExitStatus) -> ExitStatus {
        let paths = self.what_if.final_paths();
        if !self.what_if.unusable.is_empty() || paths.iter().any(ExtensionPath::fails) {
            return ExitStatus::Unresolved;
        }
        let changes = arguments.exit_code && paths.iter().any(|path| !path.hops.is_empty());
        if exit == ExitStatus::Done && changes { ExitStatus::Changes } else { exit }
    }
}

/// An upgrade path as text.
fn path_text(out: &mut String, path: &ExtensionPath, colour: bool) {
    let paint = |code: &str, text: &str| {
        if colour { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    };
    let word = match (&path.installed, path.hops.is_empty()) {
        (_, true) if path.fails() => paint("31", "fails"),
        (_, true) => paint("2", "keep"),
        (None, false) => paint("32", "install"),
        (Some(_), false) => paint("32", "upgrade"),
    };
    let _ = write!(
        out,
        "  {word} {} (package {}",
        escape_controls(&path.name),
        escape_controls(&path.package)
    );
    if let Some(first) = path.hops.first() {
        let _ = write!(out, " from {}", escape_controls(&first.catalog));
    }
    out.push_str(")\n");
    if let Some(installed) = &path.installed {
        line(out, "installed", &escape_controls(&installed.name));
    }
    let names: Vec<String> = path.hops.iter().map(|hop| escape_controls(&hop.bundle)).collect();
    if let [now, then @ ..] = names.as_slice() {
        line(out, "now", now);
        chain(out, "then", then);
    }
    for (dependency, source) in &path.required {
        let state = match source {
            Some(source) => format!("satisfied by {source}"),
            None if dependency.concerns_apis() => {
                format!("see: mainstay why clusterextension/{}", path.name)
            }
            None => "not satisfied by the ClusterExtensions of this state".to_owned(),
        };
        line(out, "requires", &escape_controls(&format!("{dependency}: {state}")));
    }
    match &path.end {
        ExtensionEnd::Best => line(out, "end", "the best version that the spec allows"),
        ExtensionEnd::Stranded(best) => {
            let words = format!("stranded: no update leads to {}", escape_controls(best));
            line(out, "end", &paint("33", &words));
        }
        ExtensionEnd::Failed(failed) => {
            if !path.hops.is_empty() {
                line(out, "end", &paint("33", "held: the next version cannot be chosen"));
            }
            tree(out, &Cause::new(&failed.failure.message), "    ");
            tree(out, &failure::extension(failed), "    ");
        }
    }
}

/// An upgrade path as JSON.
fn path_value(path: &ExtensionPath) -> Value {
    let hops = path.hops.iter().zip(1..).map(|(hop, step)| {
        json!({
            "step": step, "catalog": hop.catalog, "bundle": hop.bundle,
            "version": hop.version.to_string(), "image": hop.image,
        })
    });
    let installed = path.installed.as_ref().map(|bundle| bundle.name.clone());
    let last = path.hops.last().map(|hop| hop.bundle.to_string()).or_else(|| installed.clone());
    let (kind, best) = match &path.end {
        ExtensionEnd::Best => ("head", None),
        ExtensionEnd::Stranded(best) => ("stranded", Some(best)),
        ExtensionEnd::Failed(_) if path.hops.is_empty() => ("failed", None),
        ExtensionEnd::Failed(_) => ("held", None),
    };
    let mut value = json!({
        "name": path.name,
        "package": path.package,
        "installed": installed,
        "hops": hops.collect::<Vec<_>>(),
        "end": {"kind": kind, "bundle": last},
    });
    if !path.required.is_empty() {
        let required = path.required.iter().map(|(dependency, source)| {
            let source = source.as_ref().map(ToString::to_string);
            json!({"dependency": dependency.to_string(), "satisfiedBy": source})
        });
        value["required"] = required.collect();
    }
    if let Some(best) = best {
        value["end"]["head"] = json!(best);
    }
    if let ExtensionEnd::Failed(failed) = &path.end {
        value["error"] = json!(failed.failure.message);
        value["explanation"] = cause_json(&failure::extension(failed));
        value["repairs"] = failed.failure.repairs.iter().map(ToString::to_string).collect();
    }
    value
}
