//! String functions: parts, positions and replacements.

use crate::library::args::{
    MAX_TEXT_BYTES, exactly, int, new_list, new_string, str, substring_of, text,
};
use crate::value::{Error, StringValue, Value, ValueResult, WorkBudget};

/// The byte offset of a code point; the end of the text for the index after the last. Most texts
/// are ASCII, where both are equal.
fn byte_offset(text: &str, at: i64) -> Option<usize> {
    let at = usize::try_from(at).ok()?;
    if text.is_ascii() {
        return (at <= text.len()).then_some(at);
    }
    text.char_indices().map(|(byte, _)| byte).chain([text.len()]).nth(at)
}

/// The number of code points of a text.
#[expect(clippy::cast_possible_wrap, reason = "no text is that long")]
fn code_points(text: &str) -> i64 {
    if text.is_ascii() { text.len() as i64 } else { text.chars().count() as i64 }
}

fn out_of_range(at: i64, work: &WorkBudget) -> Error {
    Error::text(format!("index out of range: {at}"), work)
}

pub(super) fn char_at<'a>(args: &[Value<'a>], work: &WorkBudget) -> ValueResult<'a> {
    let [text_value, at] = exactly(args)?;
    let (text_value, at) = (text(text_value)?, int(at)?);
    let characters = text_value.as_str();
    let start = byte_offset(characters, at).ok_or_else(|| out_of_range(at, work))?;
    let size = characters[start..].chars().next().map_or(0, char::len_utf8);
    Ok(substring_of(text_value, start..start + size))
}

pub(super) fn index_of<'a>(args: &[Value<'a>], work: &WorkBudget) -> ValueResult<'a> {
    let [text_value, substring_sought] = exactly(args)?;
    Ok(Value::Int(find(str(text_value)?, str(substring_sought)?, 0, work)?))
}

pub(super) fn index_of_from<'a>(args: &[Value<'a>], work: &WorkBudget) -> ValueResult<'a> {
    let [text_value, substring_sought, from] = exactly(args)?;
    Ok(Value::Int(find(str(text_value)?, str(substring_sought)?, int(from)?, work)?))
}

fn find(
    text_value: &str,
    substring_sought: &str,
    from: i64,
    work: &WorkBudget,
) -> Result<i64, Error> {
    if substring_sought.is_empty() {
        return Ok(from);
    }
    if from < 0 {
        return Err(out_of_range(from, work));
    }
    let Some(start) = byte_offset(text_value, from) else { return Ok(-1) };
    let found = text_value[start..].find(substring_sought);
    Ok(found.map_or(-1, |at| from + code_points(&text_value[start..start + at])))
}

pub(super) fn last_index_of<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    let [text_value, substring_sought] = exactly(args)?;
    let (text_value, substring_sought) = (str(text_value)?, str(substring_sought)?);
    Ok(Value::Int(
        text_value.rfind(substring_sought).map_or(-1, |at| code_points(&text_value[..at])),
    ))
}

pub(super) fn last_index_of_from<'a>(args: &[Value<'a>], work: &WorkBudget) -> ValueResult<'a> {
    let [text_value, substring_sought, from] = exactly(args)?;
    let (text_value, substring_sought, from) =
        (str(text_value)?, str(substring_sought)?, int(from)?);
    if substring_sought.is_empty() {
        return Ok(Value::Int(from));
    }
    if from < 0 {
        return Err(out_of_range(from, work));
    }
    let Some(start) = byte_offset(text_value, from).filter(|start| *start < text_value.len())
    else {
        return Ok(Value::Int(-1));
    };
    // The last match begins at `from`, so it ends that many code points later.
    let end = byte_offset(&text_value[start..], code_points(substring_sought))
        .map_or(text_value.len(), |end| start + end);
    let found = text_value[..end].rfind(substring_sought);
    Ok(Value::Int(found.map_or(-1, |at| code_points(&text_value[..at]))))
}

pub(super) fn lower<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    let [text_value] = exactly(args)?;
    let text_value = text(text_value)?;
    if text_value.as_str().bytes().any(|byte| byte.is_ascii_uppercase()) {
        return Ok(new_string(text_value.as_str().to_ascii_lowercase()));
    }
    Ok(Value::String(text_value.clone()))
}

pub(super) fn upper<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    let [text_value] = exactly(args)?;
    let text_value = text(text_value)?;
    if text_value.as_str().bytes().any(|byte| byte.is_ascii_lowercase()) {
        return Ok(new_string(text_value.as_str().to_ascii_uppercase()));
    }
    Ok(Value::String(text_value.clone()))
}

pub(super) fn replace<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    let [text_value, old, new] = exactly(args)?;
    replace_up_to(text(text_value)?, str(old)?, str(new)?, usize::MAX)
}

pub(super) fn replace_some<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    let [text_value, old, new, limit] = exactly(args)?;
    let limit = usize::try_from(int(limit)?).unwrap_or(usize::MAX);
    replace_up_to(text(text_value)?, str(old)?, str(new)?, limit)
}

fn replace_up_to<'a>(
    text_value: &StringValue<'a>,
    old: &str,
    new: &str,
    limit: usize,
) -> ValueResult<'a> {
    let characters = text_value.as_str();
    let count = characters.matches(old).take(limit).count();
    if count == 0 || old == new {
        return Ok(Value::String(text_value.clone()));
    }
    let size = count.saturating_mul(new.len()).saturating_add(characters.len());
    if size > MAX_TEXT_BYTES {
        return Err(Error::fixed("replace: the result is too long"));
    }
    Ok(new_string(characters.replacen(old, new, count)))
}

pub(super) fn split<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    let [text_value, separator] = exactly(args)?;
    Ok(split_up_to(text(text_value)?, str(separator)?, usize::MAX))
}

pub(super) fn split_some<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    let [text_value, separator, limit] = exactly(args)?;
    let limit = usize::try_from(int(limit)?).unwrap_or(usize::MAX);
    Ok(split_up_to(text(text_value)?, str(separator)?, limit))
}

/// Splits a text into at most `limit` pieces, the last with the rest. An empty separator is between
/// any two code points.
fn split_up_to<'a>(text_value: &StringValue<'a>, separator: &str, limit: usize) -> Value<'a> {
    let characters = text_value.as_str();
    if limit == 0 || (separator.is_empty() && characters.is_empty()) {
        return new_list(Vec::new());
    }
    let mut split_up_to = Vec::new();
    let mut start = 0;
    while split_up_to.len() + 1 < limit {
        let rest = &characters[start..];
        let end = if separator.is_empty() {
            // The last code point is the last piece.
            rest.chars().next().map(char::len_utf8).filter(|size| *size < rest.len())
        } else {
            rest.find(separator)
        };
        let Some(end) = end else { break };
        split_up_to.push(substring_of(text_value, start..start + end));
        start += end + separator.len();
    }
    split_up_to.push(substring_of(text_value, start..characters.len()));
    new_list(split_up_to)
}

pub(super) fn substring<'a>(args: &[Value<'a>], work: &WorkBudget) -> ValueResult<'a> {
    let [text_value, start] = exactly(args)?;
    let (text_value, start) = (text(text_value)?, int(start)?);
    let characters = text_value.as_str();
    let from = byte_offset(characters, start).ok_or_else(|| out_of_range(start, work))?;
    Ok(substring_of(text_value, from..characters.len()))
}

pub(super) fn substring_range<'a>(args: &[Value<'a>], work: &WorkBudget) -> ValueResult<'a> {
    let [text_value, start, end] = exactly(args)?;
    let (text_value, start, end) = (text(text_value)?, int(start)?, int(end)?);
    if start > end {
        return Err(Error::text(
            format!("invalid substring range. start: {start}, end: {end}"),
            work,
        ));
    }
    let characters = text_value.as_str();
    let from = byte_offset(characters, start).ok_or_else(|| out_of_range(start, work))?;
    let size =
        byte_offset(&characters[from..], end - start).ok_or_else(|| out_of_range(end, work))?;
    Ok(substring_of(text_value, from..from + size))
}

pub(super) fn trim<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    let [text_value] = exactly(args)?;
    let text_value = text(text_value)?;
    let characters = text_value.as_str();
    let start = characters.len() - characters.trim_start().len();
    Ok(substring_of(text_value, start..start + characters.trim().len()))
}

pub(super) fn quote<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    let [text_value] = exactly(args)?;
    let text_value = str(text_value)?;
    let mut quoted = String::with_capacity(text_value.len() + 2);
    quoted.push('"');
    for character in text_value.chars() {
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
    Ok(new_string(quoted))
}

pub(super) fn reverse<'a>(args: &[Value<'a>], _: &WorkBudget) -> ValueResult<'a> {
    let [text_value] = exactly(args)?;
    Ok(new_string(str(text_value)?.chars().rev().collect::<String>()))
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
        if joined.len() > MAX_TEXT_BYTES {
            return Err(Error::fixed("join: the result is too long"));
        }
    }
    Ok(new_string(joined))
}

/// The text of a value as in Go, truncated: a value may contain the same value many times.
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
    // The text is truncated if it is too long.
    let _ = std::fmt::write(&mut out, format_args!("{}", value.display(work)));
    out.0
}
