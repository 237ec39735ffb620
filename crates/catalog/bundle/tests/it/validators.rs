//! Validators, compared with recorded answers of upstream's validation library and of opm.

use crate::opm_render::Score;
use mainstay_bundle::{
    BundleFolder, Limits,
    validate::{
        BadValue, ImageInspector, ManifestResult, ValidationFinding, Validator, ValidatorSettings,
        load,
    },
};
use serde_json::{Map, Value, json};
use std::{error::Error, fs, path::Path};

/// Recorded output of a container tool by image (`null` for an unknown image), and the tool's name.
struct RecordedImages(Map<String, Value>, String);

impl ImageInspector for RecordedImages {
    fn manifest(&mut self, image: &str) -> Result<String, Box<dyn Error>> {
        match self.0.get(image) {
            Some(Value::Null) | None => {
                let tool = &self.1;
                let text = format!(
                    "{tool} pull {image} failed with error: (exit status 1) {tool}: no such image: {image}\n"
                );
                Err(text.into())
            }
            Some(format_go_value) => Ok(format_go_value.to_string()),
        }
    }
}

fn finding_json(finding: &ValidationFinding) -> Value {
    let mut out = json!({
        "type": finding.kind,
        "level": finding.level.to_string(),
        "detail": finding.detail,
        "text": finding.text(),
    });
    if !finding.field.is_empty() {
        out["field"] = finding.field.clone().into();
    }
    if let BadValue::Text(text) = &finding.bad {
        out["badValue"] = text.clone().into();
    }
    out
}

fn results_json(found: &[ManifestResult]) -> Value {
    let list =
        |findings: &[ValidationFinding]| findings.iter().map(finding_json).collect::<Vec<_>>();
    let one = |result: &ManifestResult| {
        let mut out = json!({"name": result.name});
        for (key, findings) in [("errors", &result.errors), ("warnings", &result.warnings)] {
            if !findings.is_empty() {
                out[key] = list(findings).into();
            }
        }
        out
    };
    found.iter().filter(|findings| !findings.is_empty()).map(one).collect()
}

/// The findings as sets; with `has_variants` the words of their texts as sets too.
fn without_order(results_json: &Value, has_variants: bool) -> Value {
    let text = |value: &Value| {
        let text = value.as_str().unwrap_or_default().replace(',', " ");
        let mut has_variants: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        has_variants.sort();
        Value::from(has_variants.join(" "))
    };
    let mut results_json = results_json.clone();
    for result in results_json.as_array_mut().into_iter().flatten() {
        for key in ["errors", "warnings"] {
            let Some(findings) = result.get_mut(key).and_then(Value::as_array_mut) else {
                continue;
            };
            for finding in findings.iter_mut().filter(|_| has_variants) {
                for field in ["detail", "text"] {
                    finding[field] = text(&finding[field]);
                }
            }
            findings.sort_by_key(Value::to_string);
        }
    }
    results_json
}

/// Whether upstream takes findings from a map, so that the recorded order is random.
fn has_random_order(results_json: &Value) -> bool {
    let results_json = results_json.as_array().into_iter().flatten();
    let lists = results_json.flat_map(|result| [&result["errors"], &result["warnings"]]);
    lists.filter_map(Value::as_array).flatten().any(|finding| {
        let detail = finding["detail"].as_str().unwrap_or_default();
        finding["type"] == "OperationFailed" || detail.contains("is present in bundle")
    })
}

/// A text without the compressed size, which depends on the compressor.
fn without_size(text: &str) -> String {
    match text.split_once("size=~").and_then(|(head, tail)| Some((head, tail.split_once(" ,")?))) {
        Some((head, (_, tail))) => format!("{head}size=~ ,{tail}"),
        None => text.to_owned(),
    }
}

/// Whether our results agree with the recorded ones.
fn agrees(ours: &Value, recorded: &Value) -> bool {
    if recorded.get("panic").is_some() {
        return ours.as_array().is_some_and(|results_json| !results_json.is_empty());
    }
    let mut alternatives: Vec<Value> =
        recorded.get("variants").and_then(Value::as_array).cloned().unwrap_or_default();
    let has_variants = !alternatives.is_empty();
    alternatives.extend(recorded.get("results").cloned());
    let any_order = has_variants
        || recorded.get("anyOrder") == Some(&Value::Bool(true))
        || has_random_order(ours);
    alternatives.iter_mut().any(|wanted| {
        let mut ours = ours.clone();
        normalize(wanted, &mut ours);
        if any_order {
            without_order(&ours, has_variants) == without_order(wanted, has_variants)
        } else {
            ours == *wanted
        }
    })
}

/// Removes informational fields, and texts from which structures were cut.
fn normalize(recorded: &mut Value, ours: &mut Value) {
    let lists = |value: &mut Value| value.as_array_mut().map(std::mem::take).unwrap_or_default();
    let (mut wanted, mut said) = (lists(recorded), lists(ours));
    for finding in said
        .iter_mut()
        .filter_map(Value::as_object_mut)
        .flat_map(|validators| validators.values_mut())
    {
        for finding in finding.as_array_mut().into_iter().flatten() {
            for key in ["detail", "text"] {
                finding[key] = without_size(finding[key].as_str().unwrap_or_default()).into();
            }
        }
    }
    for (at, result) in wanted.iter_mut().enumerate() {
        for key in ["errors", "warnings"] {
            let Some(findings) = result.get_mut(key).and_then(Value::as_array_mut) else {
                continue;
            };
            for (number, finding) in findings.iter_mut().enumerate() {
                let Some(fields) = finding.as_object_mut() else { continue };
                fields.remove("badValueType");
                for key in ["detail", "text"] {
                    fields[key] = without_size(fields[key].as_str().unwrap_or_default()).into();
                }
                let cut = format!("{}: …", fields["level"].as_str().unwrap_or_default());
                if fields["text"].as_str().is_some_and(|text| text.starts_with(&cut)) {
                    fields.remove("text");
                    let ours = said.get_mut(at).and_then(|answer| answer.get_mut(key));
                    let ours =
                        ours.and_then(|list| list.get_mut(number)).and_then(Value::as_object_mut);
                    ours.and_then(|finding| finding.remove("text"));
                }
            }
        }
    }
    *recorded = Value::Array(wanted);
    *ours = Value::Array(said);
}

/// A recorded case: its folder, its bundle, and the differences so far.
struct Case<'c> {
    folder: &'c str,
    bundle: &'c Path,
    differences: Vec<String>,
}

impl Case<'_> {
    fn substitute(&self, text: &str) -> String {
        let bundle = self.bundle.to_str().unwrap();
        text.replace("{bundle}", bundle).replace("{case}", self.folder)
    }

    fn compare(&mut self, what: &str, ours: &Value, recorded: &Value) {
        if ours != recorded {
            self.differences.push(format!("{what}: {ours} instead of {recorded}"));
        }
    }

    fn settings(&self, run: &Value) -> ValidatorSettings {
        let mut settings = ValidatorSettings::default();
        for (key, value) in run["values"].as_object().into_iter().flatten() {
            settings.set(key, &self.substitute(value.as_str().unwrap()));
        }
        if let Some(path) = run["env"]["OPERATOR_BUNDLE_CATEGORIES"].as_str() {
            settings.categories_from(Path::new(&self.substitute(path)));
        }
        settings
    }

    fn compare_library(&mut self, recorded: &Value, images: Option<&Value>) {
        let from = recorded["from"].as_str().unwrap();
        let root = if from == "manifests" { "manifests" } else { "" };
        let finding_json = self.bundle.join(root);
        let loaded = load(
            &BundleFolder::new(self.bundle),
            root,
            finding_json.to_str().unwrap().trim_end_matches('/'),
            &Limits::default(),
        );
        let refusal = loaded.refusal.map(Value::from).unwrap_or_default();
        let wanted = recorded.get("loadError").and_then(Value::as_str);
        let wanted = wanted.map(|text| Value::from(self.substitute(text))).unwrap_or_default();
        self.compare(&format!("{from}: refusal"), &refusal, &wanted);
        if !refusal.is_null() || !wanted.is_null() {
            assert!(!loaded.problems.is_empty(), "a refusal has no problem with a location");
            return;
        }
        let subject = loaded.subject.unwrap();
        let or_null = |text: &str| if text.is_empty() { Value::Null } else { text.into() };
        let channels =
            if subject.channels.is_empty() { Value::Null } else { subject.channels.clone().into() };
        for (key, ours) in [
            ("name", or_null(&subject.name)),
            ("package", or_null(&subject.package)),
            ("channels", channels),
            ("defaultChannel", or_null(&subject.default_channel)),
            ("size", subject.size.into()),
            ("objects", subject.manifests().len().into()),
        ] {
            self.compare(&format!("{from}: {key}"), &ours, &recorded[key]);
        }
        // Compressors differ slightly.
        let expected_size = recorded["compressedSize"].as_u64().unwrap();
        if subject.compressed_size().abs_diff(expected_size) * 33 > expected_size {
            self.compare(
                "compressedSize",
                &subject.compressed_size().into(),
                &expected_size.into(),
            );
        }
        for answer in recorded["runs"].as_array().unwrap() {
            let run = &answer["run"];
            let settings = self.settings(run);
            for validator in Validator::ALL {
                let is_selected = match run["only"].as_array() {
                    Some(only) => only.iter().any(|name| name == validator.name()),
                    None => validator != Validator::MultiArch,
                };
                if !is_selected {
                    continue;
                }
                let tool = if settings.container_tool == "podman" { "podman" } else { "docker" };
                let manifests = images.and_then(Value::as_object).cloned().unwrap_or_default();
                let mut format_go_value = RecordedImages(manifests, tool.to_owned());
                let found = validator.run(&subject, &settings, Some(&mut format_go_value));
                for finding in
                    found.iter().flat_map(ManifestResult::iter).filter(|_| from == "root")
                {
                    let folder = subject.locate(finding);
                    assert!(folder.is_none_or(|folder| folder.line.is_some_and(|line| line > 0)));
                }
                let ours = results_json(&found);
                let none = json!({"results": []});
                let recorded = answer["validators"].get(validator.name()).unwrap_or(&none);
                let recorded: &Value =
                    &serde_json::from_str(&self.substitute(&recorded.to_string())).unwrap();
                if !agrees(&ours, recorded) {
                    self.differences.push(format!(
                        "{from}: {} {run}: {ours}\n   instead of {recorded}",
                        validator.name()
                    ));
                }
            }
        }
    }

    /// Compares findings for package manifests and OperatorGroups.
    fn compare_object(&mut self, recorded: &Value, compare_object: &Path, area: &str) {
        let bytes = fs::read(compare_object).unwrap();
        let ours = if area == "package" {
            mainstay_bundle::validate::validate_package_manifest(&bytes)
        } else {
            let options = mainstay_yaml::Options::default();
            let value = mainstay_yaml::one(&bytes, &options).unwrap();
            Ok(mainstay_bundle::validate::validate_operator_group(&value))
        };
        match ours {
            Err(error) => {
                self.compare("refusal", &error.to_string().into(), &recorded["loadError"]);
            }
            Ok(found) => {
                let name = if area == "package" { "packagemanifest" } else { "operatorgroup" };
                let none = json!({"results": []});
                let recorded = recorded["runs"][0]["validators"].get(name).unwrap_or(&none);
                let ours = results_json(&[found]);
                if !agrees(&ours, recorded) {
                    self.differences.push(format!("{ours}\n   instead of {recorded}"));
                }
            }
        }
    }
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[test]
fn findings_of_written_bundles_are_as_recorded() {
    let Some(data) = mainstay_testdata::unpack("answers/bundle-validate", "recorded findings")
    else {
        return;
    };
    let root = data.path().join("bundle-validate/cases");
    let mut cases: Vec<_> =
        fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    let mut score = Score::default();
    for folder in cases {
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        let recorded = read(&folder.join("validate.json"));
        let description = read(&folder.join("case.json"));
        let images = folder.join("images.json");
        let images = images.exists().then(|| read(&images));
        let bundle = folder.join("bundle");
        let mut case =
            Case { folder: folder.to_str().unwrap(), bundle: &bundle, differences: Vec::new() };
        for compare_library in recorded["library"].as_array().unwrap() {
            if compare_library["from"] == "object.yaml" {
                let area = description["area"].as_str().unwrap();
                case.compare_object(compare_library, &folder.join("object.yaml"), area);
            } else {
                case.compare_library(compare_library, images.as_ref());
            }
        }
        score.cases += 1;
        if !case.differences.is_empty() {
            eprintln!("{name}: {}", case.differences.join("\n  "));
            score.differing.insert(format!("v{name}"));
        }
    }
    score.assert_as_listed("bundles written for it are judged as recorded", "v");
}

#[test]
fn findings_of_published_bundles_are_as_recorded() {
    let Some(data) = mainstay_testdata::unpack("answers/bundle-validate", "published findings")
    else {
        return;
    };
    let Some(bundles) = mainstay_testdata::unpack("bundles-249", "published findings") else {
        return;
    };
    let root = data.path().join("bundle-validate/published/validate");
    let mut answers: Vec<_> =
        fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    answers.sort();
    let mut score = Score::default();
    for answer in answers {
        let recorded = read(&answer);
        let name = recorded["bundle"].as_str().unwrap();
        let bundle = bundles.path().join(name);
        assert!(bundle.exists(), "{name}");
        let mut case = Case { folder: "", bundle: &bundle, differences: Vec::new() };
        for compare_library in recorded["library"].as_array().unwrap() {
            case.compare_library(compare_library, None);
        }
        score.cases += 1;
        if !case.differences.is_empty() {
            eprintln!("{name}: {}", case.differences.join("\n  "));
            score.differing.insert(format!("p{name}"));
        }
    }
    score.assert_as_listed("published bundles are judged as recorded", "p");
}

/// The first difference between our checks of format and manifests and the recorded ones of `opm`.
fn find_opm_difference(bundle: &Path, recorded: &Value) -> Option<String> {
    let finding_json = bundle.join("manifests");
    let finding_json = finding_json.to_str().unwrap();
    let (tree, limits) = (BundleFolder::new(bundle), Limits::default());
    let media = mainstay_bundle::validate::media_type(&tree, "manifests", finding_json, &limits);
    let wanted = recorded["mediaType"].as_str().unwrap_or_default();
    let media = media.map_or_else(|why| format!("error: {why}"), str::to_owned);
    if media != wanted.replace("{bundle}", bundle.to_str().unwrap()) {
        return Some(format!("media type {media} instead of {wanted}"));
    }
    let ours = mainstay_bundle::validate::check_format(&tree, bundle.to_str().unwrap(), &limits);
    let wanted: Vec<String> = recorded["opm"]["format"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|argument| argument.as_str().unwrap().replace("{bundle}", bundle.to_str().unwrap()))
        .collect();
    if ours != wanted {
        return Some(format!("format: {ours:#?} instead of {wanted:#?}"));
    }
    let settings = ValidatorSettings::default();
    for hub in [None, Some(&settings)] {
        let key = if hub.is_some() { "content+operatorhub" } else { "content" };
        let mut ours = mainstay_bundle::validate::check_manifests(
            &tree,
            "manifests",
            finding_json,
            &limits,
            hub,
        );
        if recorded["opmPanic"].get(key).is_some() {
            assert!(!ours.is_empty(), "an error is expected where upstream crashes");
            continue;
        }
        let opm = &recorded["opm"];
        let wanted = opm.get(key).unwrap_or(&opm["content"]);
        let mut wanted: Vec<String> = wanted
            .as_array()
            .into_iter()
            .flatten()
            .map(|argument| {
                argument.as_str().unwrap().replace("{bundle}", bundle.to_str().unwrap())
            })
            .collect();
        // Examples, annotations and labels have a random order; labels share one text.
        let has_variants = |list: &mut Vec<String>| {
            for text in list.iter_mut() {
                let mut has_variants: Vec<&str> = text.split([' ', ',', '[', ']']).collect();
                has_variants.sort_unstable();
                *text = has_variants.join(" ");
            }
            list.sort();
        };
        has_variants(&mut ours);
        has_variants(&mut wanted);
        if ours != wanted {
            return Some(format!("{key}: {ours:#?} instead of {wanted:#?}"));
        }
    }
    None
}

#[test]
fn opm_errors_of_bundles_are_as_recorded() {
    let Some(data) = mainstay_testdata::unpack("answers/bundle-validate", "recorded content")
    else {
        return;
    };
    let root = data.path().join("bundle-validate/cases");
    let mut cases: Vec<_> =
        fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    let mut score = Score::default();
    for folder in cases.iter().filter(|folder| folder.join("bundle").exists()) {
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        score.cases += 1;
        let recorded = read(&folder.join("validate.json"));
        if let Some(difference) = find_opm_difference(&folder.join("bundle"), &recorded) {
            eprintln!("{name}: {difference}");
            score.differing.insert(format!("o{name}"));
        }
    }
    score.assert_as_listed("bundles are judged as opm judges them", "o");
}
