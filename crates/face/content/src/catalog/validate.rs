//! `mainstay catalog validate`: all findings about catalogs and bundle folders at once.

use super::open::{OpenedFolder, OpenedPath};
use crate::validation::{Finding, Options, Validated};
use clap::Args;
use mainstay_bundle::{
    Bundle, BundleFolder, BundleImage, BundleReader, Limits, validate::FindingLevel,
};
use mainstay_catalog::{CatalogProblem, CatalogRule, KeptContent, LoadOptions, lint_catalog};
use mainstay_command::cluster::ConnectionArguments;
use mainstay_command::exit::{CommandFailure, ExitStatus};
use mainstay_command::io::CommandIo;
use mainstay_command::text::count;
use serde_json::{Map, Value, json};

const EXAMPLES: &str = "Examples:
  mainstay catalog validate ./catalog
  mainstay catalog validate ./catalog bundles/* --strict -o sarif
  mainstay catalog validate ./catalog --write-baseline known-findings.yaml
  mainstay catalog validate ./catalog --baseline known-findings.yaml";

/// Arguments of `validate`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct Arguments {
    /// Folders of catalogs or of bundles (with `manifests` and `metadata`), or clustercatalog/NAME.
    #[arg(value_name = "PATH", required = true)]
    pub(super) paths: Vec<String>,
    #[command(flatten)]
    options: Options,
    /// The cluster of ClusterCatalogs.
    #[command(flatten, next_help_heading = "Cluster")]
    pub(super) connection: ConnectionArguments,
}

/// The size of a folder's content.
struct Contents {
    packages: usize,
    channels: usize,
    bundles: usize,
}

/// The findings about some folders.
#[derive(Default)]
pub(super) struct Inspection {
    pub(super) findings: Vec<Finding>,
    /// The content of valid folders, by the path as typed.
    contents: Vec<(String, Contents)>,
    /// The folders in which every document could be read.
    fully_read: Vec<String>,
    /// Whether documents could not be read, so missing ones are unknown.
    incomplete: bool,
}

pub(super) fn run(
    arguments: &Arguments,
    opened: &[OpenedPath],
    io: &mut CommandIo<'_>,
) -> Result<ExitStatus, CommandFailure> {
    let inspection = inspect_all(opened);
    let incomplete = "; missing content is reported when all files can be read";
    let (contents, fields) = (inspection.summary(), inspection.fields());
    let validated = Validated {
        folders: &inspection.fully_read,
        is_rule_enabled: &|_| true,
        contents,
        note: if inspection.incomplete { incomplete } else { "" },
        fields,
    };
    arguments.options.report(inspection.findings, &validated, io)
}

impl Inspection {
    /// The content of valid folders, such as `1 package, 2 channels`.
    fn summary(&self) -> String {
        let all = |count_of: fn(&Contents) -> usize| {
            self.contents.iter().map(|(_, contents)| count_of(contents)).sum::<usize>()
        };
        let parts: Vec<String> = [
            (all(|contents| contents.packages), "package"),
            (all(|contents| contents.channels), "channel"),
            (all(|contents| contents.bundles), "bundle"),
        ]
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, what)| count(number, what))
        .collect();
        parts.join(", ")
    }

    /// Fields of the JSON value besides the findings.
    fn fields(&self) -> Map<String, Value> {
        let contents = self.contents.iter().map(|(path, contents)| {
            json!({
                "path": path,
                "packages": contents.packages,
                "channels": contents.channels,
                "bundles": contents.bundles,
            })
        });
        Map::from_iter([
            ("complete".to_owned(), (!self.incomplete).into()),
            ("contents".to_owned(), contents.collect()),
        ])
    }
}

/// Inspects catalogs and bundles, and collects their findings.
pub(super) fn inspect_all(opened: &[OpenedPath]) -> Inspection {
    let mut inspection = Inspection::default();
    for path in opened {
        let bundle = path.bundle_folder();
        let (problems, contents, complete) = match bundle {
            Some(folder) => inspect_bundle(folder),
            None => inspect_catalog(path),
        };
        // Inspection of a refused bundle ends; that of a refused catalog goes on.
        if complete && (contents.is_some() || bundle.is_none()) {
            inspection.fully_read.push(path.argument().to_owned());
        }
        inspection.incomplete |= !complete;
        let contents = contents.map(|contents| (path.argument().to_owned(), contents));
        inspection.contents.extend(contents);
        inspection
            .findings
            .extend(problems.into_iter().map(|(package, problem)| finding(path, package, problem)));
    }
    inspection
}

fn finding(path: &OpenedPath, package: String, problem: CatalogProblem) -> Finding {
    let file = match problem.rule {
        CatalogRule::NoCatalog => path.argument().to_owned(),
        _ => path.below(&problem.file),
    };
    Finding {
        rule: problem.rule.id().to_owned(),
        about: problem.rule.about(),
        severity: problem.severity(),
        package,
        blob: problem.blob,
        file,
        line: problem.line,
        column: problem.column,
        message: problem.message,
        remedy: problem.remedy.into_owned(),
    }
}

/// Problems with their packages, the folder's content, and whether all of it was read.
type FolderInspection = (Vec<(String, CatalogProblem)>, Option<Contents>, bool);

fn inspect_catalog(path: &OpenedPath) -> FolderInspection {
    let options = LoadOptions { keep: KeptContent::Facts, ..LoadOptions::default() };
    let catalog_inspection = lint_catalog(path.source(), &options);
    let contents = catalog_inspection.catalog.map(|catalog| Contents {
        packages: catalog.packages().len(),
        channels: catalog.packages().map(|package| package.channels().len()).sum(),
        bundles: catalog.packages().map(|package| package.bundles().len()).sum(),
    });
    let problems = catalog_inspection.problems.into_iter().map(|problem| {
        let package = problem.blob.as_ref().map(|blob| match &*blob.schema {
            "olm.package" => &*blob.name,
            _ => &*blob.package,
        });
        (package.unwrap_or_default().to_owned(), problem)
    });
    (problems.collect(), contents, catalog_inspection.complete)
}

fn inspect_bundle(folder: &OpenedFolder) -> FolderInspection {
    let refused = |error: &mainstay_bundle::BundleError| {
        bundle_problem(CatalogRule::BadBundle, error.problem())
    };
    let bundle = match Bundle::read(&folder.path) {
        Ok(bundle) => bundle,
        Err(error) => {
            // A file that was passed over may be why content is missing.
            let passed_over = error.skipped_content().iter();
            let passed_over =
                passed_over.map(|problem| bundle_problem(CatalogRule::PassedOver, problem));
            let problems = passed_over.chain([refused(&error)]);
            return (problems.map(|problem| (String::new(), problem)).collect(), None, true);
        }
    };
    let passed_over = bundle.skipped_content().iter();
    let mut problems: Vec<CatalogProblem> =
        passed_over.map(|problem| bundle_problem(CatalogRule::PassedOver, problem)).collect();
    let repeated = bundle.repeated_keys().iter();
    problems.extend(repeated.map(|problem| bundle_problem(CatalogRule::RepeatedKey, problem)));
    problems.extend(bundle.unknown_apis().iter().map(|unknown| {
        let rule = match unknown.level {
            FindingLevel::Error => CatalogRule::UnknownApi,
            FindingLevel::Warning => CatalogRule::DoubtfulApi,
        };
        bundle_problem(rule, &unknown.problem)
    }));
    let tree = BundleFolder::new(&folder.path);
    let limits = Limits::default();
    let mut unknown = bundle.unknown_fields();
    unknown.extend(BundleReader::new(&tree, &limits).unknown_fields());
    problems.extend(unknown.iter().map(|field| {
        let rule = match field.level {
            FindingLevel::Error => CatalogRule::UnknownField,
            FindingLevel::Warning => CatalogRule::UnknownManifestField,
        };
        bundle_problem(rule, &field.problem)
    }));
    if let Err(error) = bundle.declare(BundleImage::None, &folder.argument) {
        problems.push(refused(&error));
    }
    problems.sort_by(|a, b| (&a.file, a.line).cmp(&(&b.file, b.line)));
    let package = bundle.package();
    let problems = problems.into_iter().map(|problem| (package.to_owned(), problem));
    let contents = Contents { packages: 0, channels: 0, bundles: 1 };
    (problems.collect(), Some(contents), true)
}

/// Converts the problem of a bundle folder into one of a catalog.
fn bundle_problem(rule: CatalogRule, problem: &mainstay_bundle::BundleProblem) -> CatalogProblem {
    let loss = match rule {
        CatalogRule::PassedOver => "; other tools drop it silently",
        _ => "",
    };
    CatalogProblem {
        rule,
        blob: None,
        file: problem.file.as_str().into(),
        line: problem.line,
        column: None,
        message: format!("{}{loss}", problem.message),
        remedy: problem.remedy.clone(),
    }
}
