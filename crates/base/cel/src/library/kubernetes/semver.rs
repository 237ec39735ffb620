//! Semantic versions: `semver("1.2.3").isLessThan(semver("2.0.0"))`.

use crate::library::args::{exactly, opaque, same, str, wrap};
use crate::library::{Library, Overload};
use crate::types::Type;
use crate::value::{Error, Opaque, Outcome, Value, WorkBudget};
use mainstay_version::{ParseVersionError, Version, parse_strict};
use std::any::Any;
use std::borrow::Cow;

/// `semver`, `isSemver`, and the methods of versions. From version 1 on the functions take whether
/// to complete what is written (`v1.2`).
pub fn library(version: u32) -> &'static Library {
    static VERSIONS: [Library; 2] = [
        Library { name: LIBRARY_NAME, overloads: || overloads(0), macros: &[], types: Vec::new },
        Library { name: LIBRARY_NAME, overloads: || overloads(1), macros: &[], types: Vec::new },
    ];
    &VERSIONS[usize::from(version > 0)]
}

const LIBRARY_NAME: &str = "kubernetes.Semver";

/// The name of the type.
const NAME: &str = "kubernetes.Semver";

/// A version as a value.
#[derive(Debug)]
struct Wrapped(Version);

impl Opaque for Wrapped {
    fn cel_type(&self) -> Type {
        Type::object(NAME)
    }

    fn equals(&self, other: &Value<'_>) -> Result<bool, Error> {
        same(other, |other: &Self| self.0 == other.0)
    }

    fn go_inside(&self) -> Option<String> {
        Some(format!("(semver.Version){}", self.0))
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

fn overloads(library: u32) -> Vec<Overload> {
    use Type::{Bool, Int, String};
    let version = || Type::object(NAME);
    let one = || vec![version()];
    let two = || vec![version(), version()];
    let method = Overload::method;
    let mut all = vec![
        Overload::function("semver", "string_to_semver", vec![String], version(), parsed),
        Overload::function("isSemver", "is_semver_string", vec![String], Bool, is),
        method("isGreaterThan", "semver_is_greater_than", two(), Bool, |args, _| {
            let [one, other] = versions(args)?;
            Ok(Value::Bool(one > other))
        }),
        method("isLessThan", "semver_is_less_than", two(), Bool, |args, _| {
            let [one, other] = versions(args)?;
            Ok(Value::Bool(one < other))
        }),
        method("compareTo", "semver_compare_to", two(), Int, |args, _| {
            let [one, other] = versions(args)?;
            Ok(Value::Int(one.cmp(other) as i64))
        }),
        method("major", "semver_major", one(), Int, |args, _| {
            number(args, |version| version.as_semver().major)
        }),
        method("minor", "semver_minor", one(), Int, |args, _| {
            number(args, |version| version.as_semver().minor)
        }),
        method("patch", "semver_patch", one(), Int, |args, _| {
            number(args, |version| version.as_semver().patch)
        }),
    ];
    if library >= 1 {
        let completed = || vec![String, Bool];
        all.push(Overload::function(
            "semver",
            "string_bool_to_semver",
            completed(),
            version(),
            parsed,
        ));
        all.push(Overload::function("isSemver", "is_semver_string_bool", completed(), Bool, is));
    }
    all
}

fn versions<'v>(args: &'v [Value<'_>]) -> Result<[&'v Version; 2], Error> {
    let [one, other] = exactly(args)?;
    Ok([&opaque::<Wrapped>(one)?.0, &opaque::<Wrapped>(other)?.0])
}

fn number<'a>(args: &[Value<'a>], part: fn(&Version) -> u64) -> Outcome<'a> {
    let [version] = exactly(args)?;
    let number = part(&opaque::<Wrapped>(version)?.0);
    // Numbers above the greatest `int` begin again below zero, as upstream.
    Ok(Value::Int(number.cast_signed()))
}

/// A text is no version.
#[derive(Debug, thiserror::Error)]
enum VersionError {
    /// It is none.
    #[error(transparent)]
    Parse(#[from] ParseVersionError),
    /// It is short, and has more than numbers.
    #[error("short version cannot contain PreRelease/Build meta data")]
    Short,
}

fn read(args: &[Value<'_>]) -> Result<Result<Version, VersionError>, Error> {
    Ok(match args {
        [written] | [written, Value::Bool(false)] => {
            parse_strict(str(written)?).map_err(VersionError::from)
        }
        [written, Value::Bool(true)] => completed(str(written)?),
        _ => return Err(Error::NoSuchOverload),
    })
}

fn parsed<'a>(args: &[Value<'a>], work: &WorkBudget) -> Outcome<'a> {
    match read(args)? {
        Ok(version) => Ok(wrap(Wrapped(version))),
        Err(error) => Err(Error::text(error.to_string(), work)),
    }
}

fn is<'a>(args: &[Value<'a>], _: &WorkBudget) -> Outcome<'a> {
    Ok(Value::Bool(read(args)?.is_ok()))
}

/// Without a leading `v` and leading zeros, and with the numbers that are missing.
fn completed(written: &str) -> Result<Version, VersionError> {
    let written = written.strip_prefix('v').unwrap_or(written);
    let mut parts: Vec<Cow<'_, str>> = written.splitn(3, '.').map(without_zeros).collect();
    if parts.len() < 3 {
        if parts.last().is_some_and(|last| last.contains(['+', '-'])) {
            return Err(VersionError::Short);
        }
        parts.resize(3, "0".into());
    }
    Ok(parse_strict(&parts.join("."))?)
}

fn without_zeros(part: &str) -> Cow<'_, str> {
    let rest = part.trim_start_matches('0');
    if part.len() < 2 || rest.len() == part.len() && rest.starts_with(|c: char| c.is_ascii_digit())
    {
        return part.into();
    }
    if rest.starts_with(|c: char| c.is_ascii_digit()) {
        rest.into()
    } else {
        format!("0{rest}").into()
    }
}
