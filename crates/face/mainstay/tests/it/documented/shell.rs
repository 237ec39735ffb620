//! The shell subset of the documentation: splits statements into simple commands.

/// Whether a word is one of the names of this program.
pub(super) fn is_ours(word: &str) -> bool {
    matches!(word, "mainstay" | "opm" | "operator-sdk")
}

/// The simple commands of a statement as words, without redirections, comments, leading variable
/// assignments and here-documents.
pub(super) fn commands(statement: &str) -> Vec<Vec<String>> {
    let mut all: Vec<Vec<String>> = vec![Vec::new()];
    let mut words = words(statement).into_iter();
    while let Some(word) = words.next() {
        match word {
            Word::Operator => all.push(Vec::new()),
            Word::Redirection => {
                words.next();
            }
            Word::Text(text) => {
                let command = all.last_mut().expect("there is one");
                let is_set = command.is_empty()
                    && text.split_once('=').is_some_and(|(name, _)| {
                        name.chars().all(|letter| letter.is_ascii_uppercase() || letter == '_')
                    });
                if !is_set {
                    command.push(text);
                }
            }
        }
    }
    all.retain(|command| !command.is_empty());
    all
}

/// Whether a text ends within quotes.
pub(super) fn is_open(text: &str) -> bool {
    let (mut quote, mut before, mut comment) = (None, ' ', false);
    for sign in text.chars() {
        match (quote, sign) {
            _ if comment => comment = sign != '\n',
            (None, '#') => comment = before.is_whitespace(),
            (None, '\'' | '"') => quote = Some(sign),
            (Some(opening), _) if opening == sign => quote = None,
            _ => {}
        }
        before = sign;
    }
    quote.is_some()
}

enum Word {
    Text(String),
    /// `|`, `&&`, `;`, `&`, an end of a line, a bracket.
    Operator,
    /// `>`, `>>`, `<`, `<<`: a word follows.
    Redirection,
}

fn words(statement: &str) -> Vec<Word> {
    let mut all = Vec::new();
    let mut word: Option<String> = None;
    let mut signs = statement.chars().peekable();
    let mut heredoc = false;
    while let Some(sign) = signs.next() {
        if sign.is_whitespace() || "|&;()<>".contains(sign) {
            all.extend(word.take().map(Word::Text));
        }
        match sign {
            '\n' if heredoc => break,
            '\n' | '|' | '&' | ';' | '(' | ')' => all.push(Word::Operator),
            '<' | '>' => {
                let mut count = 1;
                while signs.next_if_eq(&sign).is_some() {
                    count += 1;
                }
                heredoc |= sign == '<' && count == 2;
                all.push(Word::Redirection);
            }
            '#' if word.is_none() => while signs.next_if(|sign| *sign != '\n').is_some() {},
            '\'' => {
                let text = word.get_or_insert_default();
                text.extend(std::iter::from_fn(|| signs.next_if(|sign| *sign != '\'')));
                signs.next();
            }
            '"' => {
                let text = word.get_or_insert_default();
                while let Some(sign) = signs.next_if(|sign| *sign != '"') {
                    text.push(sign);
                    if sign == '$' && signs.peek() == Some(&'(') {
                        text.push_str(&substitution(&mut signs));
                    }
                }
                signs.next();
            }
            '$' if signs.peek() == Some(&'(') => {
                let text = word.get_or_insert_default();
                text.push('$');
                text.push_str(&substitution(&mut signs));
            }
            '\\' => {
                if let Some(next) = signs.next().filter(|sign| *sign != '\n') {
                    word.get_or_insert_default().push(next);
                }
            }
            sign if sign.is_whitespace() => {}
            sign => word.get_or_insert_default().push(sign),
        }
    }
    all.extend(word.map(Word::Text));
    all
}

/// A command substitution, with its brackets.
fn substitution(signs: &mut std::iter::Peekable<std::str::Chars<'_>>) -> String {
    let (mut text, mut depth) = (String::new(), 0);
    for sign in signs.by_ref() {
        text.push(sign);
        match sign {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{commands, is_open};

    #[test]
    fn quotes_in_comments_open_no_string() {
        for (text, wanted) in [
            ("a 'b", true),
            ("a 'b'", false),
            ("a   # one's", false),
            ("a \"it's\"", false),
            ("x -p '{\"a\": 1,", true),
        ] {
            assert_eq!(is_open(text), wanted, "{text}");
        }
    }

    #[test]
    fn statement_splits_into_simple_commands() {
        let said = |text: &str| {
            let all = commands(text);
            all.iter().map(|words| words.join(" ")).collect::<Vec<_>>().join(" / ")
        };
        for (text, wanted) in [
            ("mainstay up   # keeps", "mainstay up"),
            ("a 'b c' \"d e\" | jq . > f && g", "a b c d e / jq . / g"),
            ("MAINSTAY_TESTDATA=DIR x y &", "x y"),
            ("cat > f <<'EOF'\nmainstay nosuch\nEOF", "cat"),
            ("x \\\n  y", "x y"),
            ("a \"$(b \"$(c | d)\")/e\" f", "a $(b \"$(c | d)\")/e f"),
        ] {
            assert_eq!(said(text), wanted, "{text}");
        }
    }
}
