//! Parsers for texts that Go types parse themselves ([`JsonForm::ParsedText`](super::Shape::ParsedText)).

use super::TypeDefinition;
use mainstay_gocompat::quote;

/// A type that parses itself refuses a text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseTextError {
    /// The text is no version.
    #[error(transparent)]
    ParseVersion(#[from] mainstay_version::ParseVersionError),
    /// The text is no release.
    #[error(transparent)]
    ParseRelease(#[from] KubernetesReleaseError),
}

/// A text is no release: parts of letters, digits and hyphens, separated by dots.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KubernetesReleaseError {
    /// A part is empty.
    #[error("Prerelease is empty")]
    EmptyPart,
    /// A number begins with a zero.
    #[error("Numeric PreRelease version must not contain leading zeroes {}", quote(.0))]
    LeadingZeroes(String),
    /// A part has other characters.
    #[error("Invalid character(s) found in prerelease {}", quote(.0))]
    InvalidCharacters(String),
    /// A number does not fit into 64 bits.
    #[error("strconv.ParseUint: parsing {}: value out of range", quote(.0))]
    OutOfRange(String),
}

/// Parses a text as its type does.
///
/// # Errors
/// The error of the type.
pub fn parse_text(definition: &TypeDefinition, text: &str) -> Result<(), ParseTextError> {
    if definition.short_name() == "OperatorRelease" {
        return Ok(text.split('.').try_for_each(check_release_part)?);
    }
    mainstay_version::parse_tolerant(text)?;
    Ok(())
}

fn check_release_part(part: &str) -> Result<(), KubernetesReleaseError> {
    let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if part.is_empty() {
        return Err(KubernetesReleaseError::EmptyPart);
    }
    if digits && part.len() > 1 && part.starts_with('0') {
        return Err(KubernetesReleaseError::LeadingZeroes(part.to_owned()));
    }
    if !part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return Err(KubernetesReleaseError::InvalidCharacters(part.to_owned()));
    }
    if digits && part.parse::<u64>().is_err() {
        return Err(KubernetesReleaseError::OutOfRange(part.to_owned()));
    }
    Ok(())
}
