//! Goes through a text as a generated parser does, and says what that says.
//!
//! A token that does not fit is left out if the next one fits; else, if what is there fits after
//! it, the wanted one is taken as if it were there; else the rule ends, and tokens are skipped up
//! to one that could come after any of the rules around. Until a token has fitted again, nothing
//! more is said.

use super::super::lexer::{Lexer, Stray, Token, TokenKind};
use super::super::parser::MAX_NESTING;
use super::grammar::GRAMMAR;
use super::network::{Label, Network, RULES, Role, Rule, State, Tokens, Via};
use super::prediction::{Choice, Prediction, Predictor, after_any, expected, is_recursive};
use super::tree::{Branch, Tree, missing};

/// How often recovery is tried, how many tokens it skips, how many errors are told (cel-go's
/// limits).
const MAX_RECOVERIES: u32 = 30;
const MAX_SKIPPED: u32 = 256;
const MAX_ERRORS: usize = 100;

/// That it was given up; what is to be said is said.
#[derive(Debug)]
pub(super) struct GivenUp;

/// Why a rule cannot go on.
enum Failure {
    /// The current token is none of those that are expected.
    Mismatch,
    /// No alternative fits: from the token where the choice began to the one that is to blame.
    NoAlternative {
        blamed: usize,
    },
    GivenUp,
}

impl From<GivenUp> for Failure {
    fn from(_: GivenUp) -> Self {
        Self::GivenUp
    }
}

/// A rule that it is in.
struct Frame {
    rule: Rule,
    branch: Branch,
    /// The state that called it.
    caller: State,
    label: Label,
    precedence: u8,
    /// Which kind of operator comes next.
    operator: u8,
}

/// A text and what was read of it.
pub(super) struct ErrorParser<'a> {
    network: &'static Network,
    text: &'a str,
    tokens: Vec<Token>,
    /// Text that is no token, with the number of the token after it; those before `told` are told.
    strays: Vec<(usize, Stray)>,
    told: usize,
    /// The current token.
    next: usize,
    state: State,
    frames: Vec<Frame>,
    /// For each rule around but the outermost the state that called it.
    callers: Vec<State>,
    depths: [u16; RULES],
    predictor: Predictor<'static>,
    /// Whether no token has fitted since the last error.
    recovering: bool,
    /// Where recovery has begun since a token has fitted.
    last_error: Option<usize>,
    last_states: Vec<State>,
    recoveries: u32,
    pub(super) tree: Tree,
    /// What there is to say; without a place if it is about the whole text.
    pub(super) errors: Vec<(Option<u32>, String)>,
}

impl<'a> ErrorParser<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let mut lexer = Lexer::new(text);
        let (mut tokens, mut strays) = (Vec::new(), Vec::new());
        loop {
            match lexer.token() {
                Err(stray) => strays.push((tokens.len(), stray)),
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
            strays,
            told: 0,
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

    /// Reads the whole text.
    pub(super) fn run(&mut self) -> Result<Branch, GivenUp> {
        self.fetch(0)?;
        let mut at = self.enter(Rule::Start, 0, Label::None, 0)?;
        let root = self.frames[0].branch;
        loop {
            let went = if self.network.node(at).role == Role::RuleStop {
                None
            } else {
                match self.go(at) {
                    Ok(to) => Some(to),
                    Err(Failure::GivenUp) => return Err(GivenUp),
                    Err(failure) => {
                        self.recover(&failure)?;
                        None
                    }
                }
            };
            at = match went {
                Some(to) => to,
                None => match self.leave() {
                    Some(to) => to,
                    None => return Ok(root),
                },
            };
        }
    }

    // ---- tokens

    /// Sees to it that a token is read, and says what was no token before it.
    fn fetch(&mut self, index: usize) -> Result<(), GivenUp> {
        while let Some((before, stray)) = self.strays.get(self.told).copied()
            && before <= index
        {
            self.told += 1;
            let text = &self.text[stray.start as usize..stray.end as usize];
            self.say(stray.at, format!("token recognition error at: '{text}'"))?;
        }
        Ok(())
    }

    fn token(&self, ahead: usize) -> Token {
        self.tokens[(self.next + ahead).min(self.tokens.len() - 1)]
    }

    fn consume(&mut self) -> Result<(), GivenUp> {
        if self.token(0).kind != TokenKind::End {
            self.next += 1;
            self.fetch(self.next)?;
        }
        Ok(())
    }

    fn say(&mut self, at: u32, message: String) -> Result<(), GivenUp> {
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

    /// The text from the current token to another, without what was no token.
    fn text_up_to(&self, blamed: usize) -> String {
        let first = self.token(0);
        if first.kind == TokenKind::End {
            return quoted("<EOF>");
        }
        let last = (self.next + blamed).min(self.tokens.len() - 1);
        let mut shown = String::new();
        let mut from = first.start as usize;
        for (_, stray) in
            self.strays.iter().filter(|(before, _)| *before > self.next && *before <= last)
        {
            shown.push_str(&self.text[from..stray.start as usize]);
            from = stray.end as usize;
        }
        shown.push_str(&self.text[from..self.tokens[last].end as usize]);
        quoted(&shown)
    }

    // ---- rules

    /// The current rule. There is one as long as the text is read.
    fn frame(&mut self) -> &mut Frame {
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }

    fn deeper(&mut self, rule: Rule) -> Result<(), GivenUp> {
        self.depths[rule as usize] += 1;
        if self.depths[rule as usize] > MAX_NESTING {
            let message = format!("expression recursion limit exceeded: {MAX_NESTING}");
            return Err(self.give_up(message));
        }
        Ok(())
    }

    fn shallower(&mut self, rule: Rule) {
        let depth = &mut self.depths[rule as usize];
        *depth = depth.saturating_sub(1);
    }

    /// Begins a rule; its first state.
    fn enter(
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
        self.deeper(rule)?;
        Ok(self.state)
    }

    /// Ends a rule; where it goes on, if there is a rule around it.
    fn leave(&mut self) -> Option<State> {
        let frame = self.frames.pop()?;
        self.shallower(frame.rule);
        let above = self.frames.last()?;
        if is_recursive(frame.rule) {
            self.tree.add_branch(above.branch, frame.label, frame.branch);
        }
        self.callers.pop();
        self.state = frame.caller;
        Some(self.network.follow(frame.caller))
    }

    /// One step on from a state.
    fn go(&mut self, at: State) -> Result<State, Failure> {
        let node = self.network.node(at);
        match node.role {
            Role::Block => self.choose(at),
            Role::LoopBlock if node.edges.len() > 1 => self.choose(at),
            Role::StarEntry | Role::PlusBack => self.turn(at, at),
            Role::StarBack => self.turn(at, node.edges[0].to),
            Role::PlusEntry => {
                self.state = at;
                self.sync()?;
                Ok(node.edges[0].to)
            }
            Role::Basic | Role::LoopBlock | Role::BlockEnd | Role::RuleStop => self.follow(at),
        }
    }

    /// Along the only edge of a state.
    fn follow(&mut self, at: State) -> Result<State, Failure> {
        let edge = self.network.node(at).edges[0];
        match edge.via {
            Via::Nothing | Via::Return { .. } => {}
            Via::Token(tokens, label) => {
                self.state = at;
                let token = self.match_token(tokens)?;
                let branch = self.frame().branch;
                self.tree.add_token(branch, label, token);
            }
            Via::Rule { rule, precedence, label, .. } => {
                self.state = at;
                return Ok(self.enter(rule, at, label, precedence)?);
            }
            Via::Precedence(_) => {
                self.state = at;
                let Frame { rule, branch, operator, .. } = *self.frame();
                let start = self.tree.start(branch);
                let around = self.tree.add(rule, start);
                self.tree.set_alternative(around, operator);
                self.tree.add_branch(around, Label::First, branch);
                self.frame().branch = around;
                self.deeper(rule)?;
            }
        }
        Ok(edge.to)
    }

    /// A choice between alternatives, one of which may be nothing.
    fn choose(&mut self, at: State) -> Result<State, Failure> {
        self.state = at;
        self.sync()?;
        let node = self.network.node(at);
        if node.adaptive {
            let alternative = self.predict(at)?;
            let branch = self.frame().branch;
            if node.role == Role::LoopBlock {
                self.frame().operator = alternative;
            } else {
                self.tree.set_alternative(branch, alternative);
            }
            return Ok(node.edges[usize::from(alternative) - 1].to);
        }
        let kind = self.token(0).kind;
        let fits = |to: State| self.network.node(to).next.has(kind);
        let Some(chosen) = node.edges.iter().position(|edge| fits(edge.to)) else {
            let last = node.edges[node.edges.len() - 1].to;
            if last == node.end {
                return Ok(last);
            }
            return Err(Failure::NoAlternative { blamed: 0 });
        };
        let to = node.edges[chosen].to;
        if to != node.end && node.edges.iter().all(|edge| edge.to != node.end) {
            let branch = self.frame().branch;
            // A rule has few alternatives.
            self.tree.set_alternative(branch, u8::try_from(chosen + 1).unwrap_or(u8::MAX));
        }
        Ok(to)
    }

    /// Whether a loop makes another turn.
    fn turn(&mut self, at: State, decision: State) -> Result<State, Failure> {
        self.state = at;
        self.sync()?;
        let node = self.network.node(decision);
        let again = if node.adaptive {
            self.predict(decision)? == 1
        } else {
            self.network.node(node.edges[0].to).next.has(self.token(0).kind)
        };
        if !again {
            return Ok(node.edges[1].to);
        }
        if node.operators {
            let rule = self.frame().rule;
            self.shallower(rule);
            if self.network.node(node.edges[0].to).edges.len() == 1 {
                self.frame().operator = 1;
            }
        }
        Ok(node.edges[0].to)
    }

    fn predict(&mut self, decision: State) -> Result<u8, Failure> {
        let precedence = self.frame().precedence;
        let choice = Choice { state: decision, callers: &self.callers, precedence };
        let (tokens, next) = (&self.tokens, self.next);
        let mut furthest = 0;
        let prediction = self.predictor.predict(&choice, &mut |ahead| {
            furthest = furthest.max(ahead);
            tokens[(next + ahead).min(tokens.len() - 1)].kind
        });
        self.fetch(self.next + furthest)?;
        match prediction {
            Prediction::Alternative(alternative) => Ok(alternative),
            Prediction::None(blamed) => Err(Failure::NoAlternative { blamed }),
            Prediction::GivenUp => {
                let message = "Syntax error: expression is too intricate to be explained";
                Err(self.give_up(message.to_owned()).into())
            }
        }
    }

    // ---- errors

    fn expected(&self) -> Tokens {
        expected(self.network, self.state, &self.callers)
    }

    fn matched(&mut self) {
        self.recovering = false;
        self.last_error = None;
        self.last_states.clear();
    }

    fn match_token(&mut self, tokens: Tokens) -> Result<Token, Failure> {
        let token = self.token(0);
        if tokens.has(token.kind) {
            self.matched();
            self.consume()?;
            return Ok(token);
        }
        self.count_recovery()?;
        if self.leave_out()? {
            let token = self.token(0);
            self.consume()?;
            return Ok(token);
        }
        let to = self.network.node(self.state).edges[0].to;
        if expected(self.network, to, &self.callers).has(token.kind) {
            self.say_error(|run| {
                let missing = run.expected().text();
                (0, format!("missing {missing} at {}", run.token_text(token)))
            })?;
            let kind = TokenKind::ALL.into_iter().find(|kind| self.expected().has(*kind));
            let at = match token.kind {
                TokenKind::End if self.next > 0 => self.tokens[self.next - 1].at,
                _ => token.at,
            };
            return Ok(missing(kind.unwrap_or(TokenKind::End), at));
        }
        Err(Failure::Mismatch)
    }

    /// Leaves the current token out if the next one fits.
    fn leave_out(&mut self) -> Result<bool, GivenUp> {
        self.fetch(self.next + 1)?;
        if !self.expected().has(self.token(1).kind) {
            return Ok(false);
        }
        self.say_extraneous()?;
        self.consume()?;
        self.matched();
        Ok(true)
    }

    fn say_extraneous(&mut self) -> Result<(), GivenUp> {
        self.say_error(|run| {
            let (shown, wanted) = (run.token_text(run.token(0)), run.expected().text());
            (0, format!("extraneous input {shown} expecting {wanted}"))
        })
    }

    /// Says something about a token, unless the last error is not yet overcome.
    fn say_error(&mut self, what: impl FnOnce(&Self) -> (usize, String)) -> Result<(), GivenUp> {
        if self.recovering {
            return Ok(());
        }
        self.recovering = true;
        let (ahead, message) = what(self);
        self.say(self.token(ahead).at, message)
    }

    /// Before a choice: whether the current token fits at all.
    fn sync(&mut self) -> Result<(), Failure> {
        let node = self.network.node(self.state);
        let kind = self.token(0).kind;
        if self.recovering || node.next.reaches_end() || node.next.has(kind) {
            return Ok(());
        }
        match node.role {
            Role::PlusBack | Role::StarBack => {
                self.say_extraneous()?;
                let wanted = self.expected().and(after_any(self.network, &self.callers));
                while self.token(0).kind != TokenKind::End && !wanted.has(self.token(0).kind) {
                    self.consume()?;
                }
                Ok(())
            }
            _ if self.leave_out()? => Ok(()),
            _ => Err(Failure::Mismatch),
        }
    }

    fn count_recovery(&mut self) -> Result<(), GivenUp> {
        if self.recoveries == MAX_RECOVERIES {
            let message = format!("error recovery attempt limit exceeded: {MAX_RECOVERIES}");
            self.say(self.token(0).at, message)?;
            return Err(GivenUp);
        }
        self.recoveries += 1;
        Ok(())
    }

    /// Says why a rule cannot go on, and skips tokens up to one that could come after it.
    fn recover(&mut self, failure: &Failure) -> Result<(), GivenUp> {
        self.say_error(|run| {
            if let Failure::NoAlternative { blamed } = failure {
                let shown = run.text_up_to(*blamed);
                return (*blamed, reserved(&format!("no viable alternative at input {shown}")));
            }
            let (shown, wanted) = (run.token_text(run.token(0)), run.expected().text());
            (0, format!("mismatched input {shown} expecting {wanted}"))
        })?;
        self.count_recovery()?;
        let mut skipped = 0;
        if self.last_error == Some(self.next) && self.last_states.contains(&self.state) {
            self.skip(&mut skipped)?;
        }
        self.last_error = Some(self.next);
        self.last_states.push(self.state);
        let wanted = after_any(self.network, &self.callers);
        while self.token(0).kind != TokenKind::End && !wanted.has(self.token(0).kind) {
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

/// Where a word of the language stands for a name, an older text is kept.
fn reserved(message: &str) -> String {
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
