//! Addresses of mail as Go reads them (RFC 5322), and its words for what is none.

use mainstay_gocompat::quote;

/// Why a text is no address; none if it is one.
pub(crate) fn fault(text: &str) -> Option<String> {
    let mut reader = Reader { left: text };
    reader.single().err().map(|why| format!("mail: {why}"))
}

const COMMENT: &str = "misformatted parenthetical comment";

struct Reader<'t> {
    left: &'t str,
}

fn is_visible(c: char) -> bool {
    ('!'..='~').contains(&c) || !c.is_ascii()
}

fn is_atom(c: char) -> bool {
    !"()<>[]:;@\\,\"".contains(c) && is_visible(c)
}

/// A character in single quotes, as `%q` prints one.
fn quoted(c: char) -> String {
    match c {
        '\'' => "'\\''".to_owned(),
        '"' => "'\"'".to_owned(),
        c => {
            let text = quote(c.encode_utf8(&mut [0; 4]));
            format!("'{}'", &text[1..text.len() - 1])
        }
    }
}

impl<'t> Reader<'t> {
    fn peek(&self) -> Option<char> {
        self.left.chars().next()
    }

    fn take(&mut self, wanted: char) -> bool {
        match self.left.strip_prefix(wanted) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }

    fn blanks(&mut self) {
        self.left = self.left.trim_start_matches([' ', '\t']);
    }

    fn single(&mut self) -> Result<(), String> {
        let found = self.address(true)?;
        self.comments()?;
        if !self.left.is_empty() {
            return Err(format!("expected single address, got {}", quote(self.left)));
        }
        match found {
            0 => Err("empty group".to_owned()),
            1 => Ok(()),
            _ => Err("group with multiple addresses".to_owned()),
        }
    }

    /// One address, or a group; how many addresses it has.
    fn address(&mut self, group: bool) -> Result<usize, String> {
        self.blanks();
        if self.left.is_empty() {
            return Err("no address".to_owned());
        }
        let start = self.left;
        if self.plain().is_ok() {
            self.blanks();
            if self.take('(') {
                self.comment()?;
            }
            return Ok(1);
        }
        self.left = start;
        let mut words = Vec::new();
        if self.peek() != Some('<') {
            words = self.phrase()?;
        }
        self.blanks();
        if group && self.take(':') {
            return self.group();
        }
        if !self.take('<') {
            let name = words.join(" ");
            let why = if name.chars().all(is_atom) {
                "missing '@' or angle-addr"
            } else {
                "no angle-addr"
            };
            return Err(why.to_owned());
        }
        self.plain()?;
        if self.take('>') { Ok(1) } else { Err("unclosed angle-addr".to_owned()) }
    }

    fn group(&mut self) -> Result<usize, String> {
        self.blanks();
        if self.take(';') {
            self.comments()?;
            return Ok(0);
        }
        let mut found = 0;
        loop {
            self.blanks();
            found += self.address(false)?;
            self.comments()?;
            if self.take(';') {
                self.comments()?;
                return Ok(found);
            }
            if !self.take(',') {
                return Err("expected comma".to_owned());
            }
        }
    }

    /// `local@domain`.
    fn plain(&mut self) -> Result<(), String> {
        self.blanks();
        match self.peek() {
            None => return Err("no addr-spec".to_owned()),
            Some('"') => {
                // An empty one is refused whatever was wrong with it.
                if self.string().unwrap_or_default().is_empty() {
                    return Err("empty quoted string in addr-spec".to_owned());
                }
            }
            Some(_) => {
                self.atom(false)?;
            }
        }
        if !self.take('@') {
            return Err("missing @ in addr-spec".to_owned());
        }
        self.blanks();
        match self.peek() {
            None => Err("no domain in addr-spec".to_owned()),
            Some('[') => self.literal(),
            Some(_) => self.atom(false).map(|_| ()),
        }
    }

    fn atom(&mut self, lenient: bool) -> Result<&'t str, String> {
        let end = self.left.find(|c| !is_atom(c)).unwrap_or(self.left.len());
        if end == 0 {
            return Err("invalid string".to_owned());
        }
        let (atom, left) = self.left.split_at(end);
        self.left = left;
        let why = match atom {
            _ if lenient => return Ok(atom),
            _ if atom.starts_with('.') => "leading dot in atom",
            _ if atom.contains("..") => "double dot in atom",
            _ if atom.ends_with('.') => "trailing dot in atom",
            _ => return Ok(atom),
        };
        Err(why.to_owned())
    }

    fn string(&mut self) -> Result<String, String> {
        let mut found = String::new();
        let mut escaped = false;
        for (at, c) in self.left.char_indices().skip(1) {
            match c {
                _ if escaped && (is_visible(c) || c == ' ' || c == '\t') => {
                    found.push(c);
                    escaped = false;
                }
                '"' if !escaped => {
                    self.left = &self.left[at + 1..];
                    return Ok(found);
                }
                '\\' if !escaped => escaped = true,
                _ if !escaped && (is_visible(c) || c == ' ' || c == '\t') => found.push(c),
                _ => return Err(format!("bad character in quoted-string: {}", quoted(c))),
            }
        }
        Err("unclosed quoted-string".to_owned())
    }

    fn phrase(&mut self) -> Result<Vec<String>, String> {
        let mut words = Vec::new();
        loop {
            if !words.is_empty() {
                self.comments()?;
            }
            self.blanks();
            let word = match self.peek() {
                None => return Ok(words),
                Some('"') => self.string(),
                Some(_) => self.atom(true).map(str::to_owned),
            };
            match word {
                Ok(word) => words.push(word),
                Err(why) if words.is_empty() => {
                    return Err(format!("missing word in phrase: mail: {why}"));
                }
                Err(_) => return Ok(words),
            }
        }
    }

    fn literal(&mut self) -> Result<(), String> {
        let inner = &self.left[1..];
        let wrong = |c: char| !is_visible(c) || "[\\".contains(c);
        let end = inner.find(']');
        let text = &inner[..end.unwrap_or(inner.len())];
        if let Some(c) = text.chars().find(|c| wrong(*c)) {
            return Err(format!("bad character in domain-literal: {}", quoted(c)));
        }
        let Some(end) = end else { return Err("unclosed domain-literal".to_owned()) };
        self.left = &inner[end + 1..];
        if text.parse::<std::net::IpAddr>().is_err() {
            return Err(format!("invalid IP address in domain-literal: {}", quote(text)));
        }
        Ok(())
    }

    /// Comments in parentheses, and blanks around them.
    fn comments(&mut self) -> Result<(), String> {
        self.blanks();
        while self.take('(') {
            self.comment()?;
            self.blanks();
        }
        Ok(())
    }

    /// The rest of a comment whose parenthesis is open.
    fn comment(&mut self) -> Result<(), String> {
        let mut depth = 1;
        let mut chars = self.left.char_indices().peekable();
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' if chars.peek().is_some() => {
                    chars.next();
                }
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                self.left = &self.left[at + 1..];
                return Ok(());
            }
        }
        self.left = "";
        Err(COMMENT.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::fault;

    #[test]
    fn addresses_are_read_as_go_reads_them() {
        let sound = [
            "a@b.c",
            "Ann <a@b>",
            "\"A. N.\" <a@b>",
            "a@[127.0.0.1]",
            "a@b (Ann)",
            "g: a@b;",
            "ä@ö",
        ];
        for text in sound {
            assert_eq!(fault(text), None, "{text}");
        }
        for (text, why) in [
            ("", "no address"),
            ("ann", "missing '@' or angle-addr"),
            ("ann at example", "no angle-addr"),
            ("Ann <a@b", "unclosed angle-addr"),
            ("a@b, c@d", "expected single address, got \", c@d\""),
            ("g:;", "empty group"),
            ("g: a@b, c@d;", "group with multiple addresses"),
            ("<a@>", "invalid string"),
            ("<a@", "no domain in addr-spec"),
            ("<a..b@c>", "double dot in atom"),
            ("<a.@c>", "trailing dot in atom"),
            ("@b", "missing word in phrase: mail: invalid string"),
            ("a@[x]", "missing '@' or angle-addr"),
            ("<a@[x]>", "invalid IP address in domain-literal: \"x\""),
            ("a@b (", "misformatted parenthetical comment"),
            ("\"a", "missing word in phrase: mail: unclosed quoted-string"),
        ] {
            assert_eq!(fault(text).as_deref(), Some(format!("mail: {why}").as_str()), "{text}");
        }
    }
}
