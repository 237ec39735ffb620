//! Parts, places and replacements.

use crate::library::args::{LONGEST, exactly, int, list, made, part, str, text};
use crate::value::{Error, StringValue, Value, ValueResult, WorkBudget};

/// The byte at which a code point begins; the end of the text for the one behind the last. Texts
/// are nearly always ASCII, and then it is the number itself.
fn byte_of(text: &str, at: i64) -> Option<usize> {
    let at = usize::try_from(at).ok()?;
    if text.is_ascii() {
        return (at <= text.len()).then_some(at);
    }
    text.char_indices().map(|(byte, _)| byte).chain([text.len()]).nth(at)
}

/// How many code points a text has.
#[expect(clippy::cast_possible_wrap, reason = "no text is that long")]
fn length(text: &str) -> i64 {
    if text.is_ascii() { text.len() as i64 } else { text.chars().count() as i64 }
}

fn out_of_range(at: i64, work: &WorkBudget) -> Error {
    Error::text(format!("index out of range: {at}"), work)
}

pub(super) fn char_at<'a>(args: &[Value<'a>], work: &WorkBudget) -> ValueResult<'a> {
    let [whole, at] = exactly(args)?;
    let (whole, at) = (text(whole)?, int(at)?);
    let characters = whole.as_str();
    let start = byte_of(characters, at).ok_or_else(|| out_of_range(at, work))?;
    let size = characters[start..].chars().next().map_or(0, char::len_utf8);
    Ok(part(whole, start..start + size))
}

pub(super) fn index_of<'a>(args: &[Value<'a>], work: &WorkBudget) -> ValueResult<'a> {
    let [whole, wanted] = exactly(args)?;
    Ok(Value::Int(find(str(whole)?, str(wanted)?, 0, work)?))
}

pub(super) fn index_of_from<'a>(args: &[Value<'a>], work: &WorkBudget) -> ValueResult<'a> {
    let [whole, wanted, from] = exactly(args)?;
    Ok(Value::Int(find(str(whole)?, str(wanted)?, int(from)?, work)?))
}

fn find(whole: &str, wanted: &str, from: i64, work: &WorkBudget) -> Result<i64, Error> {
    if wanted.is_empty() {
        return Ok(from);
    }
    if from < 0 {
        return Err(out_of_range(from, work));
    }
    let Some(start) = byte_of(whole, from) else { return Ok(-1) };
    let found = whole[start..].find(wanted);
    Ok(found.map_or(-1, |at| from + length(&whole[start..start + at])))
}

pub(super) fn last_index_of<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    let [whole, wanted] = exactly(args)?;
    let (whole, wanted) = (str(whole)?, str(wanted)?);
    Ok(Value::Int(whole.rfind(wanted).map_or(-1, |at| length(&whole[..at]))))
}

pub(super) fn last_index_of_from<'a>(args: &[Value<'a>], work: &WorkBudget) -> ValueResult<'a> {
    let [whole, wanted, from] = exactly(args)?;
    let (whole, wanted, from) = (str(whole)?, str(wanted)?, int(from)?);
    if wanted.is_empty() {
        return Ok(Value::Int(from));
    }
    if from < 0 {
        return Err(out_of_range(from, work));
    }
    let Some(start) = byte_of(whole, from).filter(|start| *start < whole.len()) else {
        return Ok(Value::Int(-1));
    };
    // It may begin at `from` at the latest, so it ends before what follows that many code points.
    let end = byte_of(&whole[start..], length(wanted)).map_or(whole.len(), |end| start + end);
    let found = whole[..end].rfind(wanted);
    Ok(Value::Int(found.map_or(-1, |at| length(&whole[..at]))))
}

pub(super) fn lower<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    let [whole] = exactly(args)?;
    let whole = text(whole)?;
    if whole.as_str().bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Ok(made(whole.as_str().to_ascii_lowercase()));
    }
    Ok(Value::String(whole.clone()))
}

pub(super) fn upper<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    let [whole] = exactly(args)?;
    let whole = text(whole)?;
    if whole.as_str().bytes().any(|byte| byte.is_ascii_lowercase()) {
        return Ok(made(whole.as_str().to_ascii_uppercase()));
    }
    Ok(Value::String(whole.clone()))
}

pub(super) fn replace<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    let [whole, old, new] = exactly(args)?;
    replaced(text(whole)?, str(old)?, str(new)?, usize::MAX)
}

pub(super) fn replace_some<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    let [whole, old, new, most] = exactly(args)?;
    let most = usize::try_from(int(most)?).unwrap_or(usize::MAX);
    replaced(text(whole)?, str(old)?, str(new)?, most)
}

fn replaced<'a>(whole: &StringValue<'a>, old: &str, new: &str, most: usize) -> ValueResult<'a> {
    let characters = whole.as_str();
    let times = characters.matches(old).take(most).count();
    if times == 0 || old == new {
        return Ok(Value::String(whole.clone()));
    }
    let size = times.saturating_mul(new.len()).saturating_add(characters.len());
    if size > LONGEST {
        return Err(Error::fixed("replace: the result is too long"));
    }
    Ok(made(characters.replacen(old, new, times)))
}

pub(super) fn split<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    let [whole, separator] = exactly(args)?;
    Ok(pieces(text(whole)?, str(separator)?, usize::MAX))
}

pub(super) fn split_some<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    let [whole, separator, most] = exactly(args)?;
    let most = usize::try_from(int(most)?).unwrap_or(usize::MAX);
    Ok(pieces(text(whole)?, str(separator)?, most))
}

/// At most so many pieces, the last with what is left. An empty separator is between any two code
/// points.
fn pieces<'a>(whole: &StringValue<'a>, separator: &str, most: usize) -> Value<'a> {
    let characters = whole.as_str();
    if most == 0 || (separator.is_empty() && characters.is_empty()) {
        return list(Vec::new());
    }
    let mut pieces = Vec::new();
    let mut start = 0;
    while pieces.len() + 1 < most {
        let rest = &characters[start..];
        let end = if separator.is_empty() {
            // The last code point is the last piece.
            rest.chars().next().map(char::len_utf8).filter(|size| *size < rest.len())
        } else {
            rest.find(separator)
        };
        let Some(end) = end else { break };
        pieces.push(part(whole, start..start + end));
        start += end + separator.len();
    }
    pieces.push(part(whole, start..characters.len()));
    list(pieces)
}

pub(super) fn substring<'a>(args: &[Value<'a>], work: &WorkBudget) -> ValueResult<'a> {
    let [whole, start] = exactly(args)?;
    let (whole, start) = (text(whole)?, int(start)?);
    let characters = whole.as_str();
    let from = byte_of(characters, start).ok_or_else(|| out_of_range(start, work))?;
    Ok(part(whole, from..characters.len()))
}

pub(super) fn substring_range<'a>(args: &[Value<'a>], work: &WorkBudget) -> ValueResult<'a> {
    let [whole, start, end] = exactly(args)?;
    let (whole, start, end) = (text(whole)?, int(start)?, int(end)?);
    if start > end {
        return Err(Error::text(
            format!("invalid substring range. start: {start}, end: {end}"),
            work,
        ));
    }
    let characters = whole.as_str();
    let from = byte_of(characters, start).ok_or_else(|| out_of_range(start, work))?;
    let size = byte_of(&characters[from..], end - start).ok_or_else(|| out_of_range(end, work))?;
    Ok(part(whole, from..from + size))
}

pub(super) fn trim<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    let [whole] = exactly(args)?;
    let whole = text(whole)?;
    let characters = whole.as_str();
    let start = characters.len() - characters.trim_start().len();
    Ok(part(whole, start..start + characters.trim().len()))
}

pub(super) fn quote<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    let [whole] = exactly(args)?;
    let whole = str(whole)?;
    let mut quoted = String::with_capacity(whole.len() + 2);
    quoted.push('"');
    for character in whole.chars() {
        match character {
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            '\\' => quoted.push_str("\\\\"),
            '"' => quoted.push_str("\\\""),
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    Ok(made(quoted))
}

pub(super) fn reverse<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    let [whole] = exactly(args)?;
    Ok(made(str(whole)?.chars().rev().collect::<String>()))
}

pub(super) fn join<'a>(args: &[Value<'a>], work: &WorkBudget) -> ValueResult<'a> {
    let (list, separator) = match args {
        [list] => (list, ""),
        [list, separator] => (list, str(separator)?),
        _ => return Err(Error::NoSuchOverload),
    };
    let Value::List(list) = list else { return Err(Error::NoSuchOverload) };
    if let Some(Ok(first)) = list.get(0, work)
        && !matches!(first, Value::String(_))
    {
        return Err(Error::NoSuchOverload);
    }
    let mut joined = String::new();
    for (at, value) in list.iter(work).enumerate() {
        if at > 0 {
            joined.push_str(separator);
        }
        match value? {
            Value::String(text) => joined.push_str(&text),
            other => {
                return Err(Error::text(
                    format!("join: invalid input: {}", display_value(&other, work)),
                    work,
                ));
            }
        }
        if joined.len() > LONGEST {
            return Err(Error::fixed("join: the result is too long"));
        }
    }
    Ok(made(joined))
}

/// A value as Go shows it, as much of it as a message needs: values that are made may hold one
/// value many times.
fn display_value(value: &Value<'_>, work: &WorkBudget) -> String {
    struct Limited(String);

    impl std::fmt::Write for Limited {
        fn write_str(&mut self, text: &str) -> std::fmt::Result {
            if self.0.len() > 1 << 16 {
                return Err(std::fmt::Error);
            }
            self.0.push_str(text);
            Ok(())
        }
    }

    let mut out = Limited(String::new());
    // What does not fit is left out.
    let _ = std::fmt::write(&mut out, format_args!("{}", value.display(work)));
    out.0
}
