//! Parser with ANTLR's error recovery.
//!
//! If a token does not match and the next one does, the token is deleted. Else, if the token
//! matches after a missing one, that one is inserted. Else the rule ends, and tokens are skipped up
//! to one that could follow any of the current rules. After an error, no further one is reported
//! until a token matches.

use super::super::lexer::{InvalidText, Lexer, Token, TokenKind};
use super::super::parser::MAX_NESTING;
use super::grammar::GRAMMAR;
use super::network::{Label, Network, RULES, Rule, State, StateKind, Tokens, TransitionKind};
use super::prediction::{
    Decision, Prediction, Predictor, expected_tokens, is_recursive, tokens_after_callers,
};
use super::tree::{Branch, Tree, missing_token};

/// The limits of recoveries, of skipped tokens and of errors (cel-go's limits).
const MAX_RECOVERIES: u32 = 30;
const MAX_SKIPPED: u32 = 256;
const MAX_ERRORS: usize = 100;

/// The parser gave up; all errors are recorded.
#[derive(Debug)]
pub(super) struct GivenUp;

/// The failure of a rule.
enum Failure {
    /// The current token is not expected.
    Mismatch,
    /// No alternative matches. The offset is that of the token for the error.
    NoAlternative {
        error_offset: usize,
    },
    GivenUp,
}

impl From<GivenUp> for Failure {
    fn from(_: GivenUp) -> Self {
        Self::GivenUp
    }
}

/// A rule in progress.
struct Frame {
    rule: Rule,
    branch: Branch,
    /// The state that called it.
    caller: State,
    label: Label,
    precedence: u8,
    /// The alternative of the next operator.
    operator: u8,
}

/// A parser of one invalid text.
pub(super) struct ErrorParser<'a> {
    network: &'static Network,
    text: &'a str,
    tokens: Vec<Token>,
    /// Invalid text with the index of the token after it; the first `reported` ones are reported.
    invalid_texts: Vec<(usize, InvalidText)>,
    reported: usize,
    /// The current token.
    next: usize,
    state: State,
    frames: Vec<Frame>,
    /// The states that called the current rules, except the outermost.
    callers: Vec<State>,
    depths: [u16; RULES],
    predictor: Predictor<'static>,
    /// Whether no token has matched since the last error.
    recovering: bool,
    /// The token of the last recovery since a match.
    last_error: Option<usize>,
    last_states: Vec<State>,
    recoveries: u32,
    pub(super) tree: Tree,
    /// The errors; without a position for the whole text.
    pub(super) errors: Vec<(Option<u32>, String)>,
}

impl<'a> ErrorParser<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let mut lexer = Lexer::new(text);
        let (mut tokens, mut invalid_texts) = (Vec::new(), Vec::new());
        loop {
            match lexer.token() {
                Err(invalid_text) => invalid_texts.push((tokens.len(), invalid_text)),
                Ok(token) => {
                    tokens.push(token);
                    if token.kind == TokenKind::End {
                        break;
                    }
                }
            }
        }
        let network = &*GRAMMAR;
        Self {
            network,
            text,
            tokens,
            invalid_texts,
            reported: 0,
            next: 0,
            state: 0,
            frames: Vec::new(),
            callers: Vec::new(),
            depths: [0; RULES],
            predictor: Predictor::new(network),
            recovering: false,
            last_error: None,
            last_states: Vec::new(),
            recoveries: 0,
            tree: Tree::default(),
            errors: Vec::new(),
        }
    }

    /// Parses the text.
    pub(super) fn parse(&mut self) -> Result<Branch, GivenUp> {
        self.report_invalid_text(0)?;
        let mut at = self.begin_rule(Rule::Start, 0, Label::None, 0)?;
        let root = self.frames[0].branch;
        loop {
            let next_state = if self.network.node(at).state_kind == StateKind::RuleStop {
                None
            } else {
                match self.advance(at) {
                    Ok(to) => Some(to),
                    Err(Failure::GivenUp) => return Err(GivenUp),
                    Err(failure) => {
                        self.recover(&failure)?;
                        None
                    }
                }
            };
            at = match next_state {
                Some(to) => to,
                None => match self.end_rule() {
                    Some(to) => to,
                    None => return Ok(root),
                },
            };
        }
    }

    // ---- tokens

    /// Reports invalid text up to a token, as if tokens were read on demand.
    fn report_invalid_text(&mut self, index: usize) -> Result<(), GivenUp> {
        while let Some((before, invalid_text)) = self.invalid_texts.get(self.reported).copied()
            && before <= index
        {
            self.reported += 1;
            let text = &self.text[invalid_text.start as usize..invalid_text.end as usize];
            self.report(invalid_text.at, format!("token recognition error at: '{text}'"))?;
        }
        Ok(())
    }

    fn token(&self, ahead: usize) -> Token {
        self.tokens[(self.next + ahead).min(self.tokens.len() - 1)]
    }

    fn consume(&mut self) -> Result<(), GivenUp> {
        if self.token(0).kind != TokenKind::End {
            self.next += 1;
            self.report_invalid_text(self.next)?;
        }
        Ok(())
    }

    fn report(&mut self, at: u32, message: String) -> Result<(), GivenUp> {
        let enough = self.errors.len() >= MAX_ERRORS;
        let message =
            if enough { format!("More than {MAX_ERRORS} syntax errors") } else { message };
        self.errors.push((Some(at), format!("Syntax error: {message}")));
        if enough { Err(GivenUp) } else { Ok(()) }
    }

    fn give_up(&mut self, message: String) -> GivenUp {
        self.errors.push((None, message));
        GivenUp
    }

    fn token_text(&self, token: Token) -> String {
        match token.kind {
            TokenKind::End => quoted("<EOF>"),
            _ => quoted(&self.text[token.start as usize..token.end as usize]),
        }
    }

    /// The text from the current token to another one, without invalid text.
    fn text_up_to(&self, error_offset: usize) -> String {
        let first = self.token(0);
        if first.kind == TokenKind::End {
            return quoted("<EOF>");
        }
        let last = (self.next + error_offset).min(self.tokens.len() - 1);
        let mut input = String::new();
        let mut from = first.start as usize;
        for (_, invalid_text) in
            self.invalid_texts.iter().filter(|(before, _)| *before > self.next && *before <= last)
        {
            input.push_str(&self.text[from..invalid_text.start as usize]);
            from = invalid_text.end as usize;
        }
        input.push_str(&self.text[from..self.tokens[last].end as usize]);
        quoted(&input)
    }

    // ---- rules

    /// The current rule. There is one while the text is parsed.
    fn frame(&mut self) -> &mut Frame {
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }

    fn enter_recursion(&mut self, rule: Rule) -> Result<(), GivenUp> {
        self.depths[rule as usize] += 1;
        if self.depths[rule as usize] > MAX_NESTING {
            let message = format!("expression recursion limit exceeded: {MAX_NESTING}");
            return Err(self.give_up(message));
        }
        Ok(())
    }

    fn leave_recursion(&mut self, rule: Rule) {
        let depth = &mut self.depths[rule as usize];
        *depth = depth.saturating_sub(1);
    }

    /// Begins a rule; returns its first state.
    fn begin_rule(
        &mut self,
        rule: Rule,
        caller: State,
        label: Label,
        precedence: u8,
    ) -> Result<State, GivenUp> {
        if !self.frames.is_empty() {
            self.callers.push(caller);
        }
        let branch = self.tree.add(rule, self.token(0));
        if !is_recursive(rule)
            && let Some(above) = self.frames.last()
        {
            self.tree.add_branch(above.branch, label, branch);
        }
        self.frames.push(Frame { rule, branch, caller, label, precedence, operator: 0 });
        self.state = self.network.starts[rule as usize];
        self.enter_recursion(rule)?;
        Ok(self.state)
    }

    /// Ends a rule; returns the next state of the calling rule, if there is one.
    fn end_rule(&mut self) -> Option<State> {
        let frame = self.frames.pop()?;
        self.leave_recursion(frame.rule);
        let above = self.frames.last()?;
        if is_recursive(frame.rule) {
            self.tree.add_branch(above.branch, frame.label, frame.branch);
        }
        self.callers.pop();
        self.state = frame.caller;
        Some(self.network.follow(frame.caller))
    }

    /// Moves on from a state.
    fn advance(&mut self, at: State) -> Result<State, Failure> {
        let node = self.network.node(at);
        match node.state_kind {
            StateKind::Block => self.choose(at),
            StateKind::LoopBlock if node.transitions.len() > 1 => self.choose(at),
            StateKind::StarEntry | StateKind::PlusBack => self.continue_loop(at, at),
            StateKind::StarBack => self.continue_loop(at, node.transitions[0].to),
            StateKind::PlusEntry => {
                self.state = at;
                self.sync()?;
                Ok(node.transitions[0].to)
            }
            StateKind::Basic | StateKind::LoopBlock | StateKind::BlockEnd | StateKind::RuleStop => {
                self.follow(at)
            }
        }
    }

    /// Follows the only transition of a state.
    fn follow(&mut self, at: State) -> Result<State, Failure> {
        let transition = self.network.node(at).transitions[0];
        match transition.kind {
            TransitionKind::Nothing | TransitionKind::Return { .. } => {}
            TransitionKind::Token(tokens, label) => {
                self.state = at;
                let token = self.match_token(tokens)?;
                let branch = self.frame().branch;
                self.tree.add_token(branch, label, token);
            }
            TransitionKind::Rule { rule, precedence, label, .. } => {
                self.state = at;
                return Ok(self.begin_rule(rule, at, label, precedence)?);
            }
            TransitionKind::Precedence(_) => {
                self.state = at;
                let Frame { rule, branch, operator, .. } = *self.frame();
                let start = self.tree.start(branch);
                let outer_branch = self.tree.add(rule, start);
                self.tree.set_alternative(outer_branch, operator);
                self.tree.add_branch(outer_branch, Label::First, branch);
                self.frame().branch = outer_branch;
                self.enter_recursion(rule)?;
            }
        }
        Ok(transition.to)
    }

    /// Decides between alternatives, of which one may be empty.
    fn choose(&mut self, at: State) -> Result<State, Failure> {
        self.state = at;
        self.sync()?;
        let node = self.network.node(at);
        if node.adaptive {
            let alternative = self.predict(at)?;
            let branch = self.frame().branch;
            if node.state_kind == StateKind::LoopBlock {
                self.frame().operator = alternative;
            } else {
                self.tree.set_alternative(branch, alternative);
            }
            return Ok(node.transitions[usize::from(alternative) - 1].to);
        }
        let kind = self.token(0).kind;
        let fits = |to: State| self.network.node(to).next.contains(kind);
        let Some(chosen) = node.transitions.iter().position(|transition| fits(transition.to))
        else {
            let last = node.transitions[node.transitions.len() - 1].to;
            if last == node.end {
                return Ok(last);
            }
            return Err(Failure::NoAlternative { error_offset: 0 });
        };
        let to = node.transitions[chosen].to;
        if to != node.end && node.transitions.iter().all(|transition| transition.to != node.end) {
            let branch = self.frame().branch;
            // A rule has few alternatives.
            self.tree.set_alternative(branch, u8::try_from(chosen + 1).unwrap_or(u8::MAX));
        }
        Ok(to)
    }

    /// Decides whether a loop continues.
    fn continue_loop(&mut self, at: State, decision: State) -> Result<State, Failure> {
        self.state = at;
        self.sync()?;
        let node = self.network.node(decision);
        let again = if node.adaptive {
            self.predict(decision)? == 1
        } else {
            self.network.node(node.transitions[0].to).next.contains(self.token(0).kind)
        };
        if !again {
            return Ok(node.transitions[1].to);
        }
        if node.operators {
            let rule = self.frame().rule;
            self.leave_recursion(rule);
            if self.network.node(node.transitions[0].to).transitions.len() == 1 {
                self.frame().operator = 1;
            }
        }
        Ok(node.transitions[0].to)
    }

    fn predict(&mut self, decision: State) -> Result<u8, Failure> {
        let precedence = self.frame().precedence;
        let decision = Decision { state: decision, callers: &self.callers, precedence };
        let (tokens, next) = (&self.tokens, self.next);
        let mut furthest = 0;
        let prediction = self.predictor.predict(&decision, &mut |ahead| {
            furthest = furthest.max(ahead);
            tokens[(next + ahead).min(tokens.len() - 1)].kind
        });
        self.report_invalid_text(self.next + furthest)?;
        match prediction {
            Prediction::Alternative(alternative) => Ok(alternative),
            Prediction::None(error_offset) => Err(Failure::NoAlternative { error_offset }),
            Prediction::GivenUp => {
                let message = "Syntax error: expression is too intricate to be explained";
                Err(self.give_up(message.to_owned()).into())
            }
        }
    }

    // ---- errors

    fn expected_tokens(&self) -> Tokens {
        expected_tokens(self.network, self.state, &self.callers)
    }

    fn token_matched(&mut self) {
        self.recovering = false;
        self.last_error = None;
        self.last_states.clear();
    }

    fn match_token(&mut self, tokens: Tokens) -> Result<Token, Failure> {
        let token = self.token(0);
        if tokens.contains(token.kind) {
            self.token_matched();
            self.consume()?;
            return Ok(token);
        }
        self.count_recovery()?;
        if self.delete_token()? {
            let token = self.token(0);
            self.consume()?;
            return Ok(token);
        }
        let to = self.network.node(self.state).transitions[0].to;
        if expected_tokens(self.network, to, &self.callers).contains(token.kind) {
            self.report_at_token(|parser| {
                let missing = parser.expected_tokens().text();
                (0, format!("missing {missing} at {}", parser.token_text(token)))
            })?;
            let kind =
                TokenKind::ALL.into_iter().find(|kind| self.expected_tokens().contains(*kind));
            let at = match token.kind {
                TokenKind::End if self.next > 0 => self.tokens[self.next - 1].at,
                _ => token.at,
            };
            return Ok(missing_token(kind.unwrap_or(TokenKind::End), at));
        }
        Err(Failure::Mismatch)
    }

    /// Deletes the current token if the next one matches.
    fn delete_token(&mut self) -> Result<bool, GivenUp> {
        self.report_invalid_text(self.next + 1)?;
        if !self.expected_tokens().contains(self.token(1).kind) {
            return Ok(false);
        }
        self.report_extraneous()?;
        self.consume()?;
        self.token_matched();
        Ok(true)
    }

    fn report_extraneous(&mut self) -> Result<(), GivenUp> {
        self.report_at_token(|parser| {
            let (input, expected_tokens) =
                (parser.token_text(parser.token(0)), parser.expected_tokens().text());
            (0, format!("extraneous input {input} expecting {expected_tokens}"))
        })
    }

    /// Reports an error at a token, unless recovery from the last one is in progress.
    fn report_at_token(
        &mut self,
        what: impl FnOnce(&Self) -> (usize, String),
    ) -> Result<(), GivenUp> {
        if self.recovering {
            return Ok(());
        }
        self.recovering = true;
        let (ahead, message) = what(self);
        self.report(self.token(ahead).at, message)
    }

    /// Checks before a decision that the current token matches at all.
    fn sync(&mut self) -> Result<(), Failure> {
        let node = self.network.node(self.state);
        let kind = self.token(0).kind;
        if self.recovering || node.next.reaches_end() || node.next.contains(kind) {
            return Ok(());
        }
        match node.state_kind {
            StateKind::PlusBack | StateKind::StarBack => {
                self.report_extraneous()?;
                let expected_tokens =
                    self.expected_tokens().union(tokens_after_callers(self.network, &self.callers));
                while self.token(0).kind != TokenKind::End
                    && !expected_tokens.contains(self.token(0).kind)
                {
                    self.consume()?;
                }
                Ok(())
            }
            _ if self.delete_token()? => Ok(()),
            _ => Err(Failure::Mismatch),
        }
    }

    fn count_recovery(&mut self) -> Result<(), GivenUp> {
        if self.recoveries == MAX_RECOVERIES {
            let message = format!("error recovery attempt limit exceeded: {MAX_RECOVERIES}");
            self.report(self.token(0).at, message)?;
            return Err(GivenUp);
        }
        self.recoveries += 1;
        Ok(())
    }

    /// Reports the failure of a rule, and skips tokens up to one that could follow it.
    fn recover(&mut self, failure: &Failure) -> Result<(), GivenUp> {
        self.report_at_token(|parser| {
            if let Failure::NoAlternative { error_offset } = failure {
                let input = parser.text_up_to(*error_offset);
                return (
                    *error_offset,
                    keyword_message(&format!("no viable alternative at input {input}")),
                );
            }
            let (input, expected_tokens) =
                (parser.token_text(parser.token(0)), parser.expected_tokens().text());
            (0, format!("mismatched input {input} expecting {expected_tokens}"))
        })?;
        self.count_recovery()?;
        let mut skipped = 0;
        if self.last_error == Some(self.next) && self.last_states.contains(&self.state) {
            self.skip(&mut skipped)?;
        }
        self.last_error = Some(self.next);
        self.last_states.push(self.state);
        let expected_tokens = tokens_after_callers(self.network, &self.callers);
        while self.token(0).kind != TokenKind::End && !expected_tokens.contains(self.token(0).kind)
        {
            self.skip(&mut skipped)?;
        }
        Ok(())
    }

    fn skip(&mut self, skipped: &mut u32) -> Result<(), GivenUp> {
        if *skipped >= MAX_SKIPPED {
            let message = format!("error recovery token lookahead limit exceeded: {MAX_SKIPPED}");
            return Err(self.give_up(message));
        }
        *skipped += 1;
        self.consume()
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r"))
}

/// For a reserved word in place of a name cel-go keeps an older message.
fn keyword_message(message: &str) -> String {
    const BEGIN: &str = "no viable alternative at input '";
    let word = message.strip_prefix(BEGIN).and_then(|rest| {
        let mut rest = rest.chars();
        rest.next().filter(|first| *first != '\n')?;
        rest.as_str().strip_suffix('\'').filter(|word| ["true", "false", "null"].contains(word))
    });
    match word {
        Some(word) => format!("mismatched input '{word}' expecting IDENTIFIER"),
        None => message.to_owned(),
    }
}
