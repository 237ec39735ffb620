//! The simple tests of the CEL specification (<https://github.com/google/cel-spec>). They are not
//! part of this repository.
//!
//! Files about features that neither Kubernetes nor our additional libraries have are skipped. All
//! other tests must pass, except those in `exceptions.txt`. Every exception there must be needed.

mod suite;
mod textproto;

use crate::{libraries, tagged, type_text};
use mainstay_cel::Env;
use mainstay_cel::eval::{CostBudget, Program};
use mainstay_cel::library::Overload;
use mainstay_cel::types::Type;
use mainstay_cel::value::{Error, Value};
use std::collections::BTreeSet;
use std::fmt::Write;
use suite::{Declaration, Expected, Signature, Test};

/// The skipped files, and why.
const SKIPPED_FILES: &[(&str, &str)] = &[
    ("block_ext", "cel.@block is what cel-go's optimizer makes, not what people write"),
    ("enums", "protobuf enums"),
    ("network_ext", "Kubernetes has addresses and networks of its own"),
    ("proto2", "protobuf messages"),
    ("proto2_ext", "protobuf extensions"),
    ("proto3", "protobuf messages"),
    ("unknowns", "evaluation with parts of the data unknown"),
    ("wrappers", "protobuf wrappers"),
];

/// Tests that fail, and why: `file/section/test` (or `file/section/*`), a colon, a reason.
const EXCEPTIONS: &str = include_str!("exceptions.txt");

fn exceptions() -> impl Iterator<Item = (&'static str, &'static str)> {
    let lines = EXCEPTIONS.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(|line| line.split_once(": ").unwrap())
}

fn matches_pattern(pattern: &str, name: &str) -> bool {
    pattern == name || pattern.strip_suffix('*').is_some_and(|start| name.starts_with(start))
}

fn env(test: &Test) -> Env {
    let functions = test.declarations.iter().flat_map(|declaration| match declaration {
        Declaration::Function(name, overloads) => {
            overloads.iter().map(|overload| declared_overload(name, overload)).collect()
        }
        Declaration::Variable(..) => Vec::new(),
    });
    let mut env = libraries::within(&test.container, functions.collect());
    for declaration in &test.declarations {
        if let Declaration::Variable(name, of) = declaration {
            env = env.with_variable(name, type_text::read(of));
        }
    }
    env
}

/// A function that a test declares but does not call.
fn declared_overload(name: &str, (id, receiver, params, result): &Signature) -> Overload {
    Overload {
        id: Box::leak(id.clone().into_boxed_str()),
        function: Box::leak(name.to_owned().into_boxed_str()),
        receiver: *receiver,
        params: params.iter().map(|param| type_text::read(param)).collect(),
        result: type_text::read(result),
        ..Overload::function("", "", Vec::new(), Type::Dyn, |_, _| Err(Error::NoSuchOverload))
    }
}

/// Runs a test. The error describes the difference.
fn run(test: &Test) -> Result<(), String> {
    let env = env(test);
    let parsed = env.parse(&test.expr).map_err(|issues| issues.to_string());
    let failed = |text: String| match test.expected {
        Expected::Error if !test.check_only => Ok(()),
        _ => Err(text),
    };
    let parsed = match parsed {
        Ok(parsed) => parsed,
        Err(text) => return failed(text),
    };
    let program = if test.unchecked {
        Program::unchecked(&parsed, &env)
    } else {
        let checked = match env.check(parsed) {
            Ok(checked) => checked,
            Err(issues) => return failed(issues.to_string()),
        };
        if let Some(expected) = &test.deduced
            && type_text::read(expected) != *checked.output()
        {
            return Err(format!("is of type {}, not {expected}", checked.output()));
        }
        if test.check_only {
            return Ok(());
        }
        Program::new(&checked)
    };
    let program = match program {
        Ok(program) => program,
        Err(error) => return failed(error.to_string()),
    };
    let bindings: Vec<(&str, Value<'_>)> = test
        .bindings
        .iter()
        .map(|(name, value)| (name.as_str(), tagged::read(value, &Type::Dyn)))
        .collect();
    match (program.eval(&bindings, &mut CostBudget::unlimited()), &test.expected) {
        (Err(_), Expected::Error) => Ok(()),
        (Err(error), Expected::Value(_)) => Err(error.to_string()),
        (Ok(value), Expected::Error) => Err(format!("is {}, no error", tagged::write(&value))),
        (Ok(value), Expected::Value(expected)) => {
            let found = tagged::write(&value);
            if found == *expected { Ok(()) } else { Err(format!("is {found}, not {expected}")) }
        }
    }
}

#[test]
fn the_simple_suite_of_the_specification_passes() {
    let Some(folder) = mainstay_testdata::unpack("cel-spec", "the specification's tests") else {
        return;
    };
    let mut files: Vec<_> = std::fs::read_dir(folder.path().join("cel-spec"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "textproto"))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    let mut needed = BTreeSet::new();
    let (mut report, mut differences, mut passed_of_all) = (String::new(), String::new(), 0);
    for path in files {
        let file = path.file_stem().unwrap().to_str().unwrap();
        if let Some((_, why)) = SKIPPED_FILES.iter().find(|(name, _)| *name == file) {
            let _ = writeln!(report, "{file}: does not count: {why}");
            continue;
        }
        let tests = suite::read(&std::fs::read_to_string(&path).unwrap());
        let (mut passed, mut excepted, mut left_out) = (0, 0, 0);
        for test in &tests {
            if test.excluded.is_some() {
                left_out += 1;
                continue;
            }
            let exception = exceptions().find(|(pattern, _)| matches_pattern(pattern, &test.name));
            match (run(test), exception) {
                (Ok(()), _) => passed += 1,
                (Err(_), Some((pattern, _))) => {
                    needed.insert(pattern);
                    excepted += 1;
                }
                (Err(text), None) => {
                    let _ = writeln!(differences, "{}: {}\n  {text}", test.name, test.expr);
                }
            }
        }
        let _ = writeln!(
            report,
            "{file}: {passed} of {} pass, {excepted} excepted, {left_out} about protobuf",
            tests.len() - left_out
        );
        passed_of_all += passed;
    }
    for (pattern, _) in exceptions() {
        if !needed.contains(pattern) {
            let _ = writeln!(differences, "exceptions.txt: {pattern} is not needed");
        }
    }
    println!("{report}");
    assert!(differences.is_empty(), "{report}\n{differences}");
    mainstay_testdata::ran(&format!("{passed_of_all} tests of the specification"));
}
