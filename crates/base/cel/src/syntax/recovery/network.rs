//! The grammar as an augmented transition network (ATN), as in ALL(*) parser generators.
//!
//! Recovery depends on states and on the tokens that can follow them, so the network has the same
//! states as the generator's.

use super::super::lexer::TokenKind;

/// The index of a state.
pub(super) type State = u16;

/// A set of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tokens(u64);

impl Tokens {
    pub(super) const NONE: Self = Self(0);
    /// No token: the end of the rule is reachable.
    pub(super) const END_OF_RULE: Self = Self(1 << 63);

    pub(super) const fn of(kinds: &[TokenKind]) -> Self {
        let mut bits = 0;
        let mut index = 0;
        while index < kinds.len() {
            bits |= 1 << kinds[index] as u8;
            index += 1;
        }
        Self(bits)
    }

    pub(super) fn contains(self, kind: TokenKind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }

    pub(super) fn reaches_end(self) -> bool {
        self.0 & Self::END_OF_RULE.0 != 0
    }

    pub(super) fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn without_end(self) -> Self {
        Self(self.0 & !Self::END_OF_RULE.0)
    }

    /// The text of the set in errors.
    pub(super) fn text(self) -> String {
        let names = NAMES.iter().enumerate().filter(|(bit, _)| self.0 & (1 << bit) != 0);
        let names: Vec<_> = names.map(|(_, name)| *name).collect();
        match names[..] {
            [name] => name.to_owned(),
            _ => format!("{{{}}}", names.join(", ")),
        }
    }
}

/// The names of tokens, in the order of [`TokenKind`].
const NAMES: [&str; 36] = [
    "<EOF>",
    "'=='",
    "'!='",
    "'in'",
    "'<'",
    "'<='",
    "'>='",
    "'>'",
    "'&&'",
    "'||'",
    "'['",
    "']'",
    "'{'",
    "'}'",
    "'('",
    "')'",
    "'.'",
    "','",
    "'-'",
    "'!'",
    "'?'",
    "':'",
    "'+'",
    "'*'",
    "'/'",
    "'%'",
    "'true'",
    "'false'",
    "'null'",
    "NUM_FLOAT",
    "NUM_INT",
    "NUM_UINT",
    "STRING",
    "BYTES",
    "IDENTIFIER",
    "ESC_IDENTIFIER",
];

/// A rule of the grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Rule {
    Start,
    Expr,
    Or,
    And,
    Relation,
    Calc,
    Unary,
    Member,
    Primary,
    Args,
    Elements,
    Fields,
    Field,
    Entries,
    Name,
    Element,
    Literal,
}

/// The number of rules.
pub(super) const RULES: usize = 17;

/// The role of a child in its tree node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Label {
    None,
    /// The first operand, or the only one.
    First,
    /// An operand after an operator.
    Next,
    /// The last branch of a conditional.
    Last,
    Operator,
    Optional,
    Name,
    Dot,
    Open,
    Args,
    Sign,
    Colon,
    Key,
}

/// The kind of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StateKind {
    Basic,
    RuleStop,
    /// Before alternatives, of which one may be empty.
    Block,
    /// Before the alternatives of a loop.
    LoopBlock,
    BlockEnd,
    /// Before a loop that may be skipped.
    StarEntry,
    /// After an iteration of such a loop.
    StarBack,
    /// Before the first iteration of a loop that cannot be skipped.
    PlusEntry,
    /// After an iteration of such a loop.
    PlusBack,
}

/// The kind of a transition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TransitionKind {
    Nothing,
    Token(Tokens, Label),
    /// A rule that starts at the target; after it the state `follow` comes.
    Rule {
        rule: Rule,
        follow: State,
        precedence: u8,
        label: Label,
    },
    /// A precedence predicate for operators of this precedence.
    Precedence(u8),
    /// The end of a rule; `outermost` for a recursive rule without a minimum precedence.
    Return {
        outermost: bool,
    },
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Transition {
    pub(super) to: State,
    pub(super) kind: TransitionKind,
}

#[derive(Debug)]
pub(super) struct Node {
    pub(super) state_kind: StateKind,
    pub(super) rule: Rule,
    pub(super) transitions: Vec<Transition>,
    /// Whether its decision may need more than one token.
    pub(super) adaptive: bool,
    /// Whether it is the entry of a loop over operators and right operands.
    pub(super) operators: bool,
    /// The end of a block.
    pub(super) end: State,
    /// The tokens that may follow within the rule.
    pub(super) next: Tokens,
}

/// All states.
#[derive(Debug)]
pub(super) struct Network {
    pub(super) nodes: Vec<Node>,
    pub(super) starts: [State; RULES],
}

/// A part of a rule of the grammar.
pub(super) enum Production {
    Token(Tokens, Label),
    Rule(Rule, u8, Label),
    Optional(Vec<Self>),
    Star {
        adaptive: bool,
        repeated: Vec<Self>,
    },
    Plus {
        adaptive: bool,
        repeated: Vec<Self>,
    },
    OneOf {
        adaptive: bool,
        alternatives: Vec<Vec<Self>>,
    },
    /// Operators by precedence, with what follows the left operand.
    Operators(Vec<(u8, Vec<Self>)>),
}

impl Network {
    /// Builds the states of all rules.
    pub(super) fn new(rules: [(Rule, Vec<Production>); RULES]) -> Self {
        let mut network = Self { nodes: Vec::new(), starts: [0; RULES] };
        let mut stops = [0; RULES];
        for (rule, _) in &rules {
            network.starts[*rule as usize] = network.add(StateKind::Basic, *rule);
            stops[*rule as usize] = network.add(StateKind::RuleStop, *rule);
        }
        for (rule, parts) in rules {
            let last = network.add(StateKind::Basic, rule);
            network.link(last, stops[rule as usize], TransitionKind::Nothing);
            let first = network.sequence(rule, parts, last);
            network.link(network.starts[rule as usize], first, TransitionKind::Nothing);
        }
        network.link_returns(&stops);
        for state in 0..network.nodes.len() {
            let mut visited = vec![false; network.nodes.len()];
            network.nodes[state].next = network.tokens_within_rule(state, &mut visited);
        }
        network
    }

    pub(super) fn node(&self, state: State) -> &Node {
        &self.nodes[usize::from(state)]
    }

    /// The state after a rule that was called in a state.
    pub(super) fn follow(&self, state: State) -> State {
        match self.node(state).transitions.first() {
            Some(Transition { kind: TransitionKind::Rule { follow, .. }, .. }) => *follow,
            _ => state,
        }
    }

    fn add(&mut self, state_kind: StateKind, rule: Rule) -> State {
        self.nodes.push(Node {
            state_kind,
            rule,
            transitions: Vec::new(),
            adaptive: false,
            operators: false,
            end: 0,
            next: Tokens::NONE,
        });
        // The grammar has a few hundred states.
        State::try_from(self.nodes.len() - 1).unwrap_or(State::MAX)
    }

    fn link(&mut self, from: State, to: State, kind: TransitionKind) {
        self.nodes[usize::from(from)].transitions.push(Transition { to, kind });
    }

    /// Adds a sequence before the state `end`; returns its first state.
    fn sequence(&mut self, rule: Rule, parts: Vec<Production>, end: State) -> State {
        parts.into_iter().rev().fold(end, |next, part| self.part(rule, part, next))
    }

    fn part(&mut self, rule: Rule, part: Production, next: State) -> State {
        match part {
            Production::Token(tokens, label) => {
                let state = self.add(StateKind::Basic, rule);
                self.link(state, next, TransitionKind::Token(tokens, label));
                state
            }
            Production::Rule(called, precedence, label) => {
                let state = self.add(StateKind::Basic, rule);
                let kind = TransitionKind::Rule { rule: called, follow: next, precedence, label };
                self.link(state, self.starts[called as usize], kind);
                state
            }
            Production::Optional(parts) => {
                let (block, end) = self.block(StateKind::Block, rule, vec![parts], false);
                self.link(block, end, TransitionKind::Nothing);
                self.link(end, next, TransitionKind::Nothing);
                block
            }
            Production::OneOf { adaptive, alternatives } => {
                let (block, end) = self.block(StateKind::Block, rule, alternatives, adaptive);
                self.link(end, next, TransitionKind::Nothing);
                block
            }
            Production::Star { adaptive, repeated } => {
                let (block, end) = self.block(StateKind::LoopBlock, rule, vec![repeated], false);
                self.star(rule, (block, end), next, adaptive)
            }
            Production::Operators(operators) => {
                let block = self.add(StateKind::LoopBlock, rule);
                let end = self.add(StateKind::BlockEnd, rule);
                for (precedence, parts) in operators {
                    let first = self.sequence(rule, parts, end);
                    let state = self.add(StateKind::Basic, rule);
                    self.link(state, first, TransitionKind::Precedence(precedence));
                    self.link(block, state, TransitionKind::Nothing);
                }
                let node = &mut self.nodes[usize::from(block)];
                node.end = end;
                node.adaptive = true;
                let entry = self.star(rule, (block, end), next, true);
                self.nodes[usize::from(entry)].operators = true;
                entry
            }
            Production::Plus { adaptive, repeated } => {
                let (block, end) = self.block(StateKind::PlusEntry, rule, vec![repeated], false);
                let back = self.add(StateKind::PlusBack, rule);
                self.link(end, back, TransitionKind::Nothing);
                self.link(back, block, TransitionKind::Nothing);
                self.link(back, next, TransitionKind::Nothing);
                self.nodes[usize::from(back)].adaptive = adaptive;
                block
            }
        }
    }

    fn block(
        &mut self,
        state_kind: StateKind,
        rule: Rule,
        alternatives: Vec<Vec<Production>>,
        adaptive: bool,
    ) -> (State, State) {
        let block = self.add(state_kind, rule);
        let end = self.add(StateKind::BlockEnd, rule);
        for parts in alternatives {
            let first = self.sequence(rule, parts, end);
            self.link(block, first, TransitionKind::Nothing);
        }
        let node = &mut self.nodes[usize::from(block)];
        node.end = end;
        node.adaptive = adaptive;
        (block, end)
    }

    fn star(
        &mut self,
        rule: Rule,
        (block, end): (State, State),
        next: State,
        adaptive: bool,
    ) -> State {
        let entry = self.add(StateKind::StarEntry, rule);
        let back = self.add(StateKind::StarBack, rule);
        self.link(entry, block, TransitionKind::Nothing);
        self.link(entry, next, TransitionKind::Nothing);
        self.link(end, back, TransitionKind::Nothing);
        self.link(back, entry, TransitionKind::Nothing);
        self.nodes[usize::from(entry)].adaptive = adaptive;
        entry
    }

    /// Links the end of each rule with the states after its calls.
    fn link_returns(&mut self, stops: &[State; RULES]) {
        let calls: Vec<_> = self
            .nodes
            .iter()
            .flat_map(|node| &node.transitions)
            .filter_map(|transition| match transition.kind {
                TransitionKind::Rule { rule, follow, precedence, .. } => {
                    Some((rule, follow, precedence))
                }
                _ => None,
            })
            .collect();
        for (rule, follow, precedence) in calls {
            let recursive = matches!(rule, Rule::Relation | Rule::Calc | Rule::Member);
            let kind = TransitionKind::Return { outermost: recursive && precedence == 0 };
            self.link(stops[rule as usize], follow, kind);
        }
    }

    /// The tokens that may follow within the rule. No rule is empty, so no token after a called
    /// rule counts.
    fn tokens_within_rule(&self, state: usize, visited: &mut [bool]) -> Tokens {
        if std::mem::replace(&mut visited[state], true) {
            return Tokens::NONE;
        }
        let node = &self.nodes[state];
        if node.state_kind == StateKind::RuleStop {
            return Tokens::END_OF_RULE;
        }
        node.transitions.iter().fold(Tokens::NONE, |found, transition| {
            found.union(match transition.kind {
                TransitionKind::Token(tokens, _) => tokens,
                _ => self.tokens_within_rule(usize::from(transition.to), visited),
            })
        })
    }
}
