//! One line of comma-separated values, as flags with lists take them.

/// The fields of the first line that is not blank; quotes protect commas, quotes and line ends.
///
/// # Errors
/// What is wrong and where, in the known words.
pub(super) fn fields(text: &str) -> Result<Vec<String>, String> {
    if text.is_empty() {
        return Ok(Vec::new());
    }
    let text = text.replace("\r\n", "\n");
    let text = text.strip_suffix('\r').unwrap_or(&text);
    let mut lines = text.split_inclusive('\n').zip(1..).skip_while(|&(line, _)| line == "\n");
    let Some((line, first)) = lines.next() else { return Err("EOF".to_owned()) };
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

    fn wrong(&self, column: usize, what: &str) -> String {
        let record = if self.first == self.row {
            String::new()
        } else {
            format!("record on line {}; ", self.first)
        };
        format!("{record}parse error on line {}, column {}: {what}", self.row, column + 1)
    }

    /// A field without quotes, and whether another one follows.
    fn bare(&mut self) -> Result<(String, bool), String> {
        let rest = self.rest();
        let (field, more) = match rest.split_once(',') {
            Some((field, _)) => (field, true),
            None => (rest.strip_suffix('\n').unwrap_or(rest), false),
        };
        if let Some(at) = field.find('"') {
            return Err(self.wrong(self.column + at, "bare \" in non-quoted-field"));
        }
        self.column += field.len() + usize::from(more);
        Ok((field.to_owned(), more))
    }

    /// A field in quotes, and whether another one follows.
    fn quoted(&mut self) -> Result<(String, bool), String> {
        const QUOTE: &str = "extraneous or missing \" in quoted-field";
        self.column += 1;
        let mut field = String::new();
        loop {
            let rest = self.rest();
            let Some((part, after)) = rest.split_once('"') else {
                field.push_str(rest);
                self.column += rest.len();
                match self.lines.next() {
                    Some((line, row)) => (self.line, self.row, self.column) = (line, row, 0),
                    None => return Err(self.wrong(self.column, QUOTE)),
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
                _ => return Err(self.wrong(self.column - 1, QUOTE)),
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
            assert_eq!(fields(line), expected, "{line:?}");
        }
    }
}
