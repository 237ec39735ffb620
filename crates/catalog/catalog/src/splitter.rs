//! Document splitter: divides a file into parts while it is read, into JSON values or YAML
//! documents.
//!
//! A part is the unit of work of a thread, and the most of a file that is in memory at a time. Only
//! files with a form that is clear from the first byte are split. A byte-order mark, JSON that
//! continues as YAML, or a truncated file is irregular: the caller reads such a file as a whole.

use crate::lint::HIDING_BLANKS;
use mainstay_yaml::DocumentFormat;
use memchr::{memchr, memchr2, memchr3, memmem};
use std::io::{self, Read};

/// How many bytes are read at once; also roughly the length of a part of small documents.
const CHUNK: usize = 128 << 10;

/// The line that ends a YAML document, with the end of the line before it.
const SEPARATOR: &[u8] = b"\n---";

/// A part of a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FilePart {
    pub(crate) text: String,
    pub(crate) format: DocumentFormat,
    /// The line (from 1) on which the part begins.
    pub(crate) line: usize,
    /// The offset of the part in the file, in bytes.
    pub(crate) offset: usize,
}

/// The next step through a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SplitStep {
    Part(FilePart),
    End,
    /// The file must be read as a whole.
    Irregular,
}

/// Reads a file and splits it into parts.
pub(crate) struct DocumentSplitter<'s> {
    input: Box<dyn Read + Send + 's>,
    chunk: usize,
    /// How many more bytes the file may have.
    remaining: u64,
    ended: bool,
    /// The bytes that were read but not returned.
    buffer: Vec<u8>,
    /// How many of these bytes were searched for an end of a document.
    searched: usize,
    state: State,
    line: usize,
    offset: usize,
}

enum State {
    /// Only whitespace was read.
    Start,
    Yaml,
    Json {
        /// How many braces are open.
        depth: usize,
        in_text: bool,
    },
}

/// The result of a search for the end of a document.
enum Search {
    /// The offset behind the last end.
    Found(usize),
    None,
    Irregular,
}

impl<'s> DocumentSplitter<'s> {
    /// Splits an input of at most `limit` bytes.
    pub(crate) fn new(input: Box<dyn Read + Send + 's>, limit: u64) -> Self {
        Self {
            input,
            chunk: CHUNK,
            remaining: limit,
            ended: false,
            buffer: Vec::new(),
            searched: 0,
            state: State::Start,
            line: 1,
            offset: 0,
        }
    }

    /// Reads the next part.
    pub(crate) fn next(&mut self) -> SplitStep {
        loop {
            if self.fill().is_err() {
                return SplitStep::Irregular;
            }
            let found = match self.state {
                State::Start => match self.buffer.iter().position(|b| !b.is_ascii_whitespace()) {
                    Some(at) => {
                        self.state = match self.buffer[at] {
                            // Other tools do not recognize JSON behind that many blanks.
                            b'{' if at >= HIDING_BLANKS => return SplitStep::Irregular,
                            b'{' => State::Json { depth: 0, in_text: false },
                            b' '..=b'~' => State::Yaml,
                            _ => return SplitStep::Irregular,
                        };
                        continue;
                    }
                    // Only whitespace: a document without content.
                    None if self.ended && !self.buffer.is_empty() => return SplitStep::Irregular,
                    None => Search::None,
                },
                State::Yaml => self.search_yaml(),
                State::Json { depth, in_text } => self.search_json(depth, in_text),
            };
            match found {
                Search::Found(end) => return self.take_part(end),
                Search::Irregular => return SplitStep::Irregular,
                Search::None if !self.ended => {}
                Search::None => return self.last_step(),
            }
        }
    }

    /// Reads the next chunk. A file above the limit is an error.
    fn fill(&mut self) -> io::Result<()> {
        if self.ended {
            return Ok(());
        }
        self.buffer.reserve(self.chunk);
        let read = self.input.by_ref().take(self.chunk as u64).read_to_end(&mut self.buffer)?;
        self.ended = read < self.chunk;
        self.remaining =
            self.remaining.checked_sub(read as u64).ok_or(io::ErrorKind::FileTooLarge)?;
        Ok(())
    }

    /// Searches for the last line that begins with three dashes, the end of a YAML document that is
    /// not empty. The line belongs to the document that it ends.
    fn search_yaml(&mut self) -> Search {
        let mut found = Search::None;
        let mut at = self.searched.saturating_sub(SEPARATOR.len());
        self.searched = self.buffer.len();
        while let Some(line) = memmem::find(&self.buffer[at..], SEPARATOR) {
            let tail = at + line + SEPARATOR.len();
            let Some(length) = memchr(b'\n', &self.buffer[tail..]) else {
                self.searched = tail;
                break;
            };
            // A second line of dashes begins the next document, and ends none.
            at = tail + length + 1;
            found = Search::Found(at);
        }
        found
    }

    /// Searches for the last place at which all braces are closed.
    fn search_json(&mut self, mut depth: usize, mut in_text: bool) -> Search {
        let mut found = Search::None;
        let mut at = self.searched;
        while at < self.buffer.len() {
            let rest = &self.buffer[at..];
            if in_text {
                match memchr2(b'"', b'\\', rest) {
                    Some(quote) if rest[quote] == b'"' => {
                        in_text = false;
                        at += quote + 1;
                    }
                    // The escaped byte may belong to the next chunk.
                    Some(escape) => at += escape + 2,
                    None => at = self.buffer.len(),
                }
            } else if depth == 0 {
                match rest[0] {
                    b'{' => depth = 1,
                    b' ' | b'\t' | b'\r' | b'\n' => {}
                    _ => return Search::Irregular,
                }
                at += 1;
            } else {
                let Some(token) = memchr3(b'"', b'{', b'}', rest) else {
                    at = self.buffer.len();
                    break;
                };
                at += token + 1;
                match rest[token] {
                    b'"' => in_text = true,
                    b'{' => depth += 1,
                    _ => {
                        depth -= 1;
                        if depth == 0 {
                            found = Search::Found(at);
                        }
                    }
                }
            }
        }
        self.searched = at;
        self.state = State::Json { depth, in_text };
        found
    }

    /// Takes the bytes before `end` as a part.
    fn take_part(&mut self, end: usize) -> SplitStep {
        let rest = self.buffer.split_off(end);
        self.searched = self.searched.saturating_sub(end);
        let bytes = std::mem::replace(&mut self.buffer, rest);
        let format = match self.state {
            State::Json { .. } => DocumentFormat::Json,
            State::Start | State::Yaml => DocumentFormat::Yaml,
        };
        let (line, offset) = (self.line, self.offset);
        self.line += memchr::memchr_iter(b'\n', &bytes).count();
        self.offset += bytes.len();
        match String::from_utf8(bytes) {
            Ok(text) => SplitStep::Part(FilePart { text, format, line, offset }),
            Err(_) => SplitStep::Irregular,
        }
    }

    /// The step at the end of the file.
    fn last_step(&mut self) -> SplitStep {
        match self.state {
            State::Json { depth: 0, in_text: false } => SplitStep::End,
            State::Json { .. } => SplitStep::Irregular,
            State::Start | State::Yaml if self.buffer.is_empty() => SplitStep::End,
            State::Start | State::Yaml => self.take_part(self.buffer.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{DocumentSplitter, SplitStep};
    use mainstay_yaml::{EmptyDocuments, Options, documents};
    use proptest::prelude::*;

    /// All documents of a text that is read in chunks of `chunk` bytes, each with its line and byte
    /// range; `None` if the file is irregular.
    fn split(text: &[u8], chunk: usize) -> Option<Vec<(String, usize, std::ops::Range<usize>)>> {
        let mut splitter = DocumentSplitter::new(Box::new(text), 1 << 20);
        splitter.chunk = chunk;
        let mut found = Vec::new();
        loop {
            let part = match splitter.next() {
                SplitStep::Part(part) => part,
                SplitStep::End => return Some(found),
                SplitStep::Irregular => return None,
            };
            for document in
                mainstay_yaml::documents_of_part(&part.text, part.format, part.line, &options())
            {
                let document = document.ok()?;
                let bytes = document.bytes.start + part.offset..document.bytes.end + part.offset;
                found.push((document.value.to_string(), document.line, bytes));
            }
        }
    }

    fn options() -> Options {
        Options { empty: EmptyDocuments::Keep, ..Options::default() }
    }

    #[test]
    fn regular_files_are_split_and_irregular_ones_are_not() {
        let table: [(&[u8], Option<usize>); 15] = [
            (b"", Some(0)),
            (b"a: 1\n", Some(1)),
            (b"---\na: 1\n---\nb: 2\n---\n---\nc: 3", Some(3)),
            (b"a: 1\n---", Some(1)),
            (b"\n---\na: 1\n--- # x\nb: 2\n", Some(3)),
            (b" {\"a\": \"}\\\"\"}\n{}{\"b\": {}}\n", Some(3)),
            (b" \n", None),
            (b"{\"a\": 1", None),
            (b"{} 5", None),
            (b"{a: 1}", None),
            (b"{}}", None),
            (b"a: 1\n--- b\n", None),
            (b"\xef\xbb\xbfa: 1\n", None),
            (b"a: \xff\n", None),
            (b"{\"a\": \"\xff\"}", None),
        ];
        for (text, expected) in table {
            for chunk in [1, 2, 3, 5, 1000] {
                let found = split(text, chunk).map(|found| found.len());
                assert_eq!(found, expected, "{} by {chunk}", String::from_utf8_lossy(text));
            }
        }
    }

    #[test]
    fn a_file_above_the_limit_is_not_read_to_its_end() {
        let mut splitter = DocumentSplitter::new(Box::new(std::io::repeat(b'{')), 1 << 20);
        assert_eq!(splitter.next(), SplitStep::Irregular);
    }

    proptest! {
        #[test]
        fn splitting_does_not_change_the_documents_of_a_file(
            parts in prop::collection::vec(prop_oneof![
                Just("---"), Just("\n"), Just("a: 1"), Just("--- # c"), Just("- x"), Just("{"),
                Just("}"), Just("\"b\": "), Just("\"c\\\"\""), Just(","), Just(" "), Just("..."),
                Just("{\"a\": {}}"), Just("#"), Just("\r"), Just("|-\n  t"), Just("'"),
            ], 0..24),
            chunk in 1_usize..40,
        ) {
            let text = parts.concat();
            if let Some(found) = split(text.as_bytes(), chunk) {
                let whole: Result<Vec<_>, _> = documents(text.as_bytes(), &options())
                    .map(|read| read.map(|document| (document.value.to_string(), document.line, document.bytes)))
                    .collect();
                prop_assert_eq!(Ok(found), whole);
            }
        }
    }
}
