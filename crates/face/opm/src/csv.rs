//! Comma-separated values (CSV) in flags with lists, parsed as Go's `encoding/csv` does.

/// The text is not a line of comma-separated values. The texts are those of Go's library.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CsvError {
    /// The text has only blank lines.
    #[error("EOF")]
    Empty,
    /// A quote is misplaced or missing.
    #[error("{}parse error on line {line}, column {column}: {kind}", record(*first, *line))]
    Quote {
        /// The first line of the values, from 1.
        first: usize,
        /// The line of the error, from 1.
        line: usize,
        /// The column in bytes, from 1.
        column: usize,
        /// The kind of error.
        kind: QuoteErrorKind,
    },
}

fn record(first: usize, line: usize) -> String {
    if first == line { String::new() } else { format!("record on line {first}; ") }
}

/// The error of a quote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuoteErrorKind {
    /// The quote is in a field that does not begin with one.
    #[error("bare \" in non-quoted-field")]
    Bare,
    /// The quote does not end its field, or the closing quote is missing.
    #[error("extraneous or missing \" in quoted-field")]
    Quoted,
}

/// The fields of the first line that is not blank; quoted fields may contain commas, quotes and line
/// ends.
///
/// # Errors
/// The error with its line and column.
pub(super) fn fields(text: &str) -> Result<Vec<String>, CsvError> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let text = text.replace("\r\n", "\n");
    let text = text.strip_suffix('\r').unwrap_or(&text);
    let mut lines = text.split_inclusive('\n').zip(1..).skip_while(|&(line, _)| line == "\n");
    let Some((line, first)) = lines.next() else { return Err(CsvError::Empty) };
    let mut reader = Reader { lines: &mut lines, line, first, row: first, column: 0 };
    let mut fields = Vec::new();
    loop {
        let (field, more) = match reader.rest().strip_prefix('"') {
            Some(_) => reader.quoted()?,
            None => reader.bare()?,
        };
        fields.push(field);
        if !more {
            return Ok(fields);
        }
    }
}

struct Reader<'a, L> {
    lines: &'a mut L,
    line: &'a str,
    first: usize,
    row: usize,
    column: usize,
}

impl<'a, L: Iterator<Item = (&'a str, usize)>> Reader<'a, L> {
    fn rest(&self) -> &'a str {
        &self.line[self.column..]
    }

    fn quote_error(&self, column: usize, kind: QuoteErrorKind) -> CsvError {
        CsvError::Quote { first: self.first, line: self.row, column: column + 1, kind }
    }

    /// A field without quotes, and whether another one follows.
    fn bare(&mut self) -> Result<(String, bool), CsvError> {
        let rest = self.rest();
        let (field, more) = match rest.split_once(',') {
            Some((field, _)) => (field, true),
            None => (rest.strip_suffix('\n').unwrap_or(rest), false),
        };
        if let Some(at) = field.find('"') {
            return Err(self.quote_error(self.column + at, QuoteErrorKind::Bare));
        }
        self.column += field.len() + usize::from(more);
        Ok((field.to_owned(), more))
    }

    /// A field in quotes, and whether another one follows.
    fn quoted(&mut self) -> Result<(String, bool), CsvError> {
        self.column += 1;
        let mut field = String::new();
        loop {
            let rest = self.rest();
            let Some((part, after)) = rest.split_once('"') else {
                field.push_str(rest);
                self.column += rest.len();
                match self.lines.next() {
                    Some((line, row)) => (self.line, self.row, self.column) = (line, row, 0),
                    None => return Err(self.quote_error(self.column, QuoteErrorKind::Quoted)),
                }
                continue;
            };
            field.push_str(part);
            self.column += part.len() + 1;
            match after.as_bytes() {
                [b'"', ..] => {
                    field.push('"');
                    self.column += 1;
                }
                [b',', ..] => {
                    self.column += 1;
                    return Ok((field, true));
                }
                [] | [b'\n'] => return Ok((field, false)),
                _ => return Err(self.quote_error(self.column - 1, QuoteErrorKind::Quoted)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::fields;

    #[test]
    fn lists_are_comma_separated_values() {
        const BARE: &str = "bare \" in non-quoted-field";
        const QUOTE: &str = "extraneous or missing \" in quoted-field";
        for (line, read) in [
            ("", Ok(&[][..])),
            ("a", Ok(&["a"])),
            ("a,,b", Ok(&["a", "", "b"])),
            ("a,", Ok(&["a", ""])),
            ("\"a,b\",c", Ok(&["a,b", "c"])),
            ("\"a\"\"b\"", Ok(&["a\"b"])),
            ("\"a\nb\",c\r\nd", Ok(&["a\nb", "c"])),
            ("a\nb", Ok(&["a"])),
            ("\n", Err(("EOF", ""))),
            ("\"a", Err(("parse error on line 1, column 3: ", QUOTE))),
            ("x,\"a\"b", Err(("parse error on line 1, column 5: ", QUOTE))),
            ("\"a\nbc\"d", Err(("record on line 1; parse error on line 2, column 3: ", QUOTE))),
            ("\n\na\"b", Err(("parse error on line 3, column 2: ", BARE))),
            ("é\"", Err(("parse error on line 1, column 3: ", BARE))),
        ] {
            let expected = read
                .map(|fields| fields.iter().map(|&field| field.to_owned()).collect::<Vec<_>>())
                .map_err(|(place, what)| format!("{place}{what}"));
            assert_eq!(fields(line).map_err(|error| error.to_string()), expected, "{line:?}");
        }
    }
}
