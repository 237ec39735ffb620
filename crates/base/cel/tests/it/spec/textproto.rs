//! Parser for the text format of protocol buffers, as far as the specification's tests use it. It
//! reads any message without its type.

/// A message: its fields in source order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Message(pub(crate) Vec<(String, Node)>);

/// The value of a field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Node {
    /// `{ ... }`
    Message(Message),
    /// `"text"`; adjacent strings are joined.
    String(Vec<u8>),
    /// A number or a name, as written.
    Word(String),
}

impl Message {
    /// All values of a field.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Node> {
        self.0.iter().filter(move |(field, _)| field == name).map(|(_, node)| node)
    }

    /// The value of a field that occurs at most once.
    pub(crate) fn get(&self, name: &str) -> Option<&Node> {
        self.0.iter().find(|(field, _)| field == name).map(|(_, node)| node)
    }

    /// The message in a field.
    pub(crate) fn message(&self, name: &str) -> Option<&Self> {
        self.get(name).map(Node::as_message)
    }

    /// The text of a field, empty if it is missing.
    pub(crate) fn text(&self, name: &str) -> String {
        self.get(name).map_or_else(String::new, Node::as_text)
    }

    /// Whether a field is `true`.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.get(name) == Some(&Node::Word("true".into()))
    }
}

impl Node {
    /// The value as a message.
    pub(crate) fn as_message(&self) -> &Message {
        let Self::Message(message) = self else { panic!("no message: {self:?}") };
        message
    }

    /// The value as bytes.
    pub(crate) fn as_bytes(&self) -> &[u8] {
        let Self::String(bytes) = self else { panic!("no string: {self:?}") };
        bytes
    }

    /// The value as a text.
    pub(crate) fn as_text(&self) -> String {
        String::from_utf8(self.as_bytes().to_vec()).unwrap()
    }

    /// The value as a word.
    pub(crate) fn as_word(&self) -> &str {
        let Self::Word(word) = self else { panic!("no word: {self:?}") };
        word
    }
}

/// Parses a text. A test that cannot read its data has failed, so this panics.
pub(crate) fn parse(text: &str) -> Message {
    let mut reader = Reader { rest: text, all: text };
    let message = reader.message();
    assert!(reader.rest.is_empty(), "left over at line {}", reader.line());
    message
}

struct Reader<'a> {
    rest: &'a str,
    all: &'a str,
}

impl Reader<'_> {
    fn line(&self) -> usize {
        self.all[..self.all.len() - self.rest.len()].matches('\n').count() + 1
    }

    /// The next character after spaces and comments.
    fn peek(&mut self) -> Option<char> {
        loop {
            self.rest = self.rest.trim_start();
            let Some(comment) = self.rest.strip_prefix('#') else { break };
            self.rest = comment.find('\n').map_or("", |end| &comment[end..]);
        }
        self.rest.chars().next()
    }

    fn eat(&mut self, expected: char) -> bool {
        let found = self.peek() == Some(expected);
        if found {
            self.rest = &self.rest[expected.len_utf8()..];
        }
        found
    }

    fn message(&mut self) -> Message {
        let mut fields = Vec::new();
        while let Some(next) = self.peek() {
            if next == '}' {
                break;
            }
            let name = self.name();
            let colon = self.eat(':');
            if self.eat('[') {
                while !self.eat(']') {
                    let node = self.node(colon);
                    fields.push((name.clone(), node));
                    self.eat(',');
                }
            } else {
                let node = self.node(colon);
                fields.push((name, node));
            }
            let _ = self.eat(',') || self.eat(';');
        }
        Message(fields)
    }

    /// The name of a field, or the type of an `Any` in brackets.
    fn name(&mut self) -> String {
        if !self.eat('[') {
            return self.word();
        }
        let (name, rest) = self.rest.split_once(']').unwrap();
        self.rest = rest;
        format!("[{}]", name.trim())
    }

    fn word(&mut self) -> String {
        let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '+');
        let end = self.rest.find(|c| !is_word(c)).unwrap_or(self.rest.len());
        assert!(end > 0, "no name at line {}", self.line());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word.to_owned()
    }

    fn node(&mut self, colon: bool) -> Node {
        match self.peek() {
            Some('{') => {
                self.eat('{');
                let message = self.message();
                assert!(self.eat('}'), "no closing brace at line {}", self.line());
                Node::Message(message)
            }
            Some('"' | '\'') => {
                let mut bytes = Vec::new();
                while let Some(quote @ ('"' | '\'')) = self.peek() {
                    self.string(quote, &mut bytes);
                }
                Node::String(bytes)
            }
            _ => {
                assert!(colon, "no value at line {}", self.line());
                Node::Word(self.word())
            }
        }
    }

    fn string(&mut self, quote: char, into: &mut Vec<u8>) {
        let mut chars = self.rest[1..].char_indices();
        while let Some((at, char)) = chars.next() {
            if char == quote {
                self.rest = &self.rest[1 + at + 1..];
                return;
            }
            if char != '\\' {
                into.extend(char.encode_utf8(&mut [0; 4]).bytes());
                continue;
            }
            let (at, escaped) = chars.next().unwrap();
            let digits_from = 1 + at + 1;
            let (start, most, radix) = match escaped {
                'n' => (0, 0, u32::from(b'\n')),
                't' => (0, 0, u32::from(b'\t')),
                'r' => (0, 0, u32::from(b'\r')),
                'a' => (0, 0, 7),
                'b' => (0, 0, 8),
                'f' => (0, 0, 12),
                'v' => (0, 0, 11),
                'x' | 'X' => (digits_from, 2, 16),
                'u' => (digits_from, 4, 16),
                'U' => (digits_from, 8, 16),
                '0'..='7' => (digits_from - 1, 3, 8),
                other => (0, 0, u32::from(other)),
            };
            if most == 0 {
                into.push(u8::try_from(radix).unwrap());
                continue;
            }
            let digits = self.rest[start..].chars().take(most).take_while(|c| c.is_digit(radix));
            let length = digits.count();
            let code = u32::from_str_radix(&self.rest[start..start + length], radix).unwrap();
            let consumed = length - usize::from(radix == 8);
            if consumed > 0 {
                chars.nth(consumed - 1);
            }
            if matches!(escaped, 'u' | 'U') {
                let char = char::from_u32(code).unwrap();
                into.extend(char.encode_utf8(&mut [0; 4]).bytes());
            } else {
                into.push(u8::try_from(code).unwrap());
            }
        }
        panic!("no closing quote at line {}", self.line());
    }
}

#[test]
fn text_protos_are_parsed() {
    let word = |text: &str| Node::Word(text.into());
    let string = |bytes: &[u8]| Node::String(bytes.to_vec());
    let message = parse(
        "# comment\n\
         a: 1 # another\n\
         b { c: -1.5e3, d: true; }\n\
         e: { [type.example/T] { f: inf } }\n\
         g: ['x', \"y\"]\n\
         h: 'it\\'s' \"\\n\\x41\\101\\377\\u00e4é\"\n",
    );
    let inner = Message(vec![("c".into(), word("-1.5e3")), ("d".into(), word("true"))]);
    let any = Message(vec![("f".into(), word("inf"))]);
    let expected = Message(vec![
        ("a".into(), word("1")),
        ("b".into(), Node::Message(inner)),
        ("e".into(), Node::Message(Message(vec![("[type.example/T]".into(), Node::Message(any))]))),
        ("g".into(), string(b"x")),
        ("g".into(), string(b"y")),
        ("h".into(), string(&[b"it's\nAA\xff".as_slice(), "äé".as_bytes()].concat())),
    ]);
    assert_eq!(message, expected);
}
