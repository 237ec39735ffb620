//! Semver library: `semver("1.2.3").isLessThan(semver("2.0.0"))`.

use crate::library::args::{compare_opaque, exactly, opaque, str, wrap};
use crate::library::{FunctionLibrary, Overload};
use crate::types::Type;
use crate::value::{Error, Opaque, Value, ValueResult, WorkBudget};
use mainstay_version::{ParseVersionError, Version, parse_strict};
use std::any::Any;
use std::borrow::Cow;

/// `semver`, `isSemver`, and the methods of versions. From library version 1 on, a second argument
/// requests normalization (`v1.2`).
pub fn library(version: u32) -> &'static FunctionLibrary {
    static VERSIONS: [FunctionLibrary; 2] = [
        FunctionLibrary {
            name: LIBRARY_NAME,
            overloads: || overloads(0),
            macros: &[],
            types: Vec::new,
        },
        FunctionLibrary {
            name: LIBRARY_NAME,
            overloads: || overloads(1),
            macros: &[],
            types: Vec::new,
        },
    ];
    &VERSIONS[usize::from(version > 0)]
}

const LIBRARY_NAME: &str = "kubernetes.Semver";

/// The name of the type.
const NAME: &str = "kubernetes.Semver";

/// A version as a value.
#[derive(Debug)]
struct SemverValue(Version);

impl Opaque for SemverValue {
    fn cel_type(&self) -> Type {
        Type::object(NAME)
    }

    fn equals(&self, other: &Value<'_>) -> Result<bool, Error> {
        compare_opaque(other, |other: &Self| self.0 == other.0)
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
        Overload::function("semver", "string_to_semver", vec![String], version(), parse_semver),
        Overload::function("isSemver", "is_semver_string", vec![String], Bool, is_semver),
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
            version_number(args, |version| version.as_semver().major)
        }),
        method("minor", "semver_minor", one(), Int, |args, _| {
            version_number(args, |version| version.as_semver().minor)
        }),
        method("patch", "semver_patch", one(), Int, |args, _| {
            version_number(args, |version| version.as_semver().patch)
        }),
    ];
    if library >= 1 {
        let params = || vec![String, Bool];
        all.push(Overload::function(
            "semver",
            "string_bool_to_semver",
            params(),
            version(),
            parse_semver,
        ));
        all.push(Overload::function(
            "isSemver",
            "is_semver_string_bool",
            params(),
            Bool,
            is_semver,
        ));
    }
    all
}

fn versions<'v>(args: &'v [Value<'_>]) -> Result<[&'v Version; 2], Error> {
    let [one, other] = exactly(args)?;
    Ok([&opaque::<SemverValue>(one)?.0, &opaque::<SemverValue>(other)?.0])
}

fn version_number<'a>(args: &[Value<'a>], part: fn(&Version) -> u64) -> ValueResult<'a> {
    let [version] = exactly(args)?;
    let number = part(&opaque::<SemverValue>(version)?.0);
    // As in upstream, numbers above the greatest `int` wrap to negative ones.
    Ok(Value::Int(number.cast_signed()))
}

/// A text is not a version.
#[derive(Debug, thiserror::Error)]
enum VersionError {
    /// The text is invalid.
    #[error(transparent)]
    Parse(#[from] ParseVersionError),
    /// It is short, and has more than numbers.
    #[error("short version cannot contain PreRelease/Build meta data")]
    Short,
}

fn read_version(args: &[Value<'_>]) -> Result<Result<Version, VersionError>, Error> {
    Ok(match args {
        [text] | [text, Value::Bool(false)] => parse_strict(str(text)?).map_err(VersionError::from),
        [text, Value::Bool(true)] => normalize(str(text)?),
        _ => return Err(Error::NoSuchOverload),
    })
}

fn parse_semver<'a>(args: &[Value<'a>], work: &WorkBudget) -> ValueResult<'a> {
    match read_version(args)? {
        Ok(version) => Ok(wrap(SemverValue(version))),
        Err(error) => Err(Error::text(error.to_string(), work)),
    }
}

fn is_semver<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    Ok(Value::Bool(read_version(args)?.is_ok()))
}

/// Normalizes a version: removes a leading `v` and leading zeros, and adds missing numbers.
fn normalize(text: &str) -> Result<Version, VersionError> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let mut parts: Vec<Cow<'_, str>> = text.splitn(3, '.').map(trim_leading_zeros).collect();
    if parts.len() < 3 {
        if parts.last().is_some_and(|last| last.contains(['+', '-'])) {
            return Err(VersionError::Short);
        }
        parts.resize(3, "0".into());
    }
    Ok(parse_strict(&parts.join("."))?)
}

fn trim_leading_zeros(part: &str) -> Cow<'_, str> {
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
