//! The grammar as a network of states, as parser generators of the ALL(*) kind see it.
//!
//! Where recovery goes on and what it expects is told by states and the sets of tokens that can
//! follow them, so the network has the states that the generator makes of the same grammar.

use super::super::lexer::TokenKind;

/// The number of a state.
pub(super) type State = u16;

/// A set of tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tokens(u64);

impl Tokens {
    pub(super) const NONE: Self = Self(0);
    /// Not a token: that the end of the rule can be reached.
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

    pub(super) fn has(self, kind: TokenKind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }

    pub(super) fn reaches_end(self) -> bool {
        self.0 & Self::END_OF_RULE.0 != 0
    }

    pub(super) fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn without_end(self) -> Self {
        Self(self.0 & !Self::END_OF_RULE.0)
    }

    /// As errors list it.
    pub(super) fn text(self) -> String {
        let names = NAMES.iter().enumerate().filter(|(bit, _)| self.0 & (1 << bit) != 0);
        let names: Vec<_> = names.map(|(_, name)| *name).collect();
        match names[..] {
            [name] => name.to_owned(),
            _ => format!("{{{}}}", names.join(", ")),
        }
    }
}

/// What tokens are called, in the order of [`TokenKind`].
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

/// How many rules there are.
pub(super) const RULES: usize = 17;

/// What a part of a rule is to those that read the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Label {
    None,
    /// The first operand, or the only one.
    First,
    /// What comes after an operator, once or again and again.
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

/// What a state is to recovery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Basic,
    RuleStop,
    /// Before alternatives, of which one may be nothing.
    Block,
    /// Before the alternatives in a loop.
    LoopBlock,
    BlockEnd,
    /// Before a loop that may be skipped.
    StarEntry,
    /// After a turn of such a loop.
    StarBack,
    /// Before the first turn of a loop that may not be skipped.
    PlusEntry,
    /// After a turn of such a loop.
    PlusBack,
}

/// What it takes to go along an edge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Via {
    Nothing,
    Token(Tokens, Label),
    /// A rule, which begins at the edge's end; afterwards it goes on at `follow`.
    Rule {
        rule: Rule,
        follow: State,
        precedence: u8,
        label: Label,
    },
    /// That operators of this strength may be read.
    Precedence(u8),
    /// That a rule has ended; `outermost` if that was one of operators of any strength.
    Return {
        outermost: bool,
    },
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) to: State,
    pub(super) via: Via,
}

#[derive(Debug)]
pub(super) struct Node {
    pub(super) role: Role,
    pub(super) rule: Rule,
    pub(super) edges: Vec<Edge>,
    /// Whether a choice takes more than one token to make.
    pub(super) adaptive: bool,
    /// Whether it is the entry of a loop over operators and their right operands.
    pub(super) operators: bool,
    /// Of a block its end.
    pub(super) end: State,
    /// What may come next within the rule.
    pub(super) next: Tokens,
}

/// All states.
#[derive(Debug)]
pub(super) struct Network {
    pub(super) nodes: Vec<Node>,
    pub(super) starts: [State; RULES],
}

/// A part of a rule.
pub(super) enum Part {
    Token(Tokens, Label),
    Rule(Rule, u8, Label),
    Maybe(Vec<Self>),
    Star {
        adaptive: bool,
        turn: Vec<Self>,
    },
    Plus {
        adaptive: bool,
        turn: Vec<Self>,
    },
    OneOf {
        adaptive: bool,
        of: Vec<Vec<Self>>,
    },
    /// Operators by their strengths, with what comes after the left operand.
    Operators(Vec<(u8, Vec<Self>)>),
}

impl Network {
    /// Makes the states of all rules.
    pub(super) fn new(rules: [(Rule, Vec<Part>); RULES]) -> Self {
        let mut network = Self { nodes: Vec::new(), starts: [0; RULES] };
        let mut stops = [0; RULES];
        for (rule, _) in &rules {
            network.starts[*rule as usize] = network.add(Role::Basic, *rule);
            stops[*rule as usize] = network.add(Role::RuleStop, *rule);
        }
        for (rule, parts) in rules {
            let last = network.add(Role::Basic, rule);
            network.link(last, stops[rule as usize], Via::Nothing);
            let first = network.sequence(rule, parts, last);
            network.link(network.starts[rule as usize], first, Via::Nothing);
        }
        network.link_returns(&stops);
        for state in 0..network.nodes.len() {
            let mut seen = vec![false; network.nodes.len()];
            network.nodes[state].next = network.look(state, &mut seen);
        }
        network
    }

    pub(super) fn node(&self, state: State) -> &Node {
        &self.nodes[usize::from(state)]
    }

    /// Where it goes on after a rule that was entered at a state.
    pub(super) fn follow(&self, state: State) -> State {
        match self.node(state).edges.first() {
            Some(Edge { via: Via::Rule { follow, .. }, .. }) => *follow,
            _ => state,
        }
    }

    fn add(&mut self, role: Role, rule: Rule) -> State {
        self.nodes.push(Node {
            role,
            rule,
            edges: Vec::new(),
            adaptive: false,
            operators: false,
            end: 0,
            next: Tokens::NONE,
        });
        // The grammar has some hundred states.
        State::try_from(self.nodes.len() - 1).unwrap_or(State::MAX)
    }

    fn link(&mut self, from: State, to: State, via: Via) {
        self.nodes[usize::from(from)].edges.push(Edge { to, via });
    }

    /// The first state of parts that lead to a state.
    fn sequence(&mut self, rule: Rule, parts: Vec<Part>, end: State) -> State {
        parts.into_iter().rev().fold(end, |next, part| self.part(rule, part, next))
    }

    fn part(&mut self, rule: Rule, part: Part, next: State) -> State {
        match part {
            Part::Token(tokens, label) => {
                let state = self.add(Role::Basic, rule);
                self.link(state, next, Via::Token(tokens, label));
                state
            }
            Part::Rule(called, precedence, label) => {
                let state = self.add(Role::Basic, rule);
                let via = Via::Rule { rule: called, follow: next, precedence, label };
                self.link(state, self.starts[called as usize], via);
                state
            }
            Part::Maybe(parts) => {
                let (block, end) = self.block(Role::Block, rule, vec![parts], false);
                self.link(block, end, Via::Nothing);
                self.link(end, next, Via::Nothing);
                block
            }
            Part::OneOf { adaptive, of } => {
                let (block, end) = self.block(Role::Block, rule, of, adaptive);
                self.link(end, next, Via::Nothing);
                block
            }
            Part::Star { adaptive, turn } => {
                let (block, end) = self.block(Role::LoopBlock, rule, vec![turn], false);
                self.star(rule, (block, end), next, adaptive)
            }
            Part::Operators(operators) => {
                let block = self.add(Role::LoopBlock, rule);
                let end = self.add(Role::BlockEnd, rule);
                for (strength, parts) in operators {
                    let first = self.sequence(rule, parts, end);
                    let state = self.add(Role::Basic, rule);
                    self.link(state, first, Via::Precedence(strength));
                    self.link(block, state, Via::Nothing);
                }
                let node = &mut self.nodes[usize::from(block)];
                node.end = end;
                node.adaptive = true;
                let entry = self.star(rule, (block, end), next, true);
                self.nodes[usize::from(entry)].operators = true;
                entry
            }
            Part::Plus { adaptive, turn } => {
                let (block, end) = self.block(Role::PlusEntry, rule, vec![turn], false);
                let back = self.add(Role::PlusBack, rule);
                self.link(end, back, Via::Nothing);
                self.link(back, block, Via::Nothing);
                self.link(back, next, Via::Nothing);
                self.nodes[usize::from(back)].adaptive = adaptive;
                block
            }
        }
    }

    fn block(
        &mut self,
        role: Role,
        rule: Rule,
        alternatives: Vec<Vec<Part>>,
        adaptive: bool,
    ) -> (State, State) {
        let block = self.add(role, rule);
        let end = self.add(Role::BlockEnd, rule);
        for parts in alternatives {
            let first = self.sequence(rule, parts, end);
            self.link(block, first, Via::Nothing);
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
        let entry = self.add(Role::StarEntry, rule);
        let back = self.add(Role::StarBack, rule);
        self.link(entry, block, Via::Nothing);
        self.link(entry, next, Via::Nothing);
        self.link(end, back, Via::Nothing);
        self.link(back, entry, Via::Nothing);
        self.nodes[usize::from(entry)].adaptive = adaptive;
        entry
    }

    /// From the end of each rule to wherever one of its calls goes on.
    fn link_returns(&mut self, stops: &[State; RULES]) {
        let calls: Vec<_> = self
            .nodes
            .iter()
            .flat_map(|node| &node.edges)
            .filter_map(|edge| match edge.via {
                Via::Rule { rule, follow, precedence, .. } => Some((rule, follow, precedence)),
                _ => None,
            })
            .collect();
        for (rule, follow, precedence) in calls {
            let recursive = matches!(rule, Rule::Relation | Rule::Calc | Rule::Member);
            let via = Via::Return { outermost: recursive && precedence == 0 };
            self.link(stops[rule as usize], follow, via);
        }
    }

    /// What may come next within the rule. No rule can be empty, so nothing comes after one here.
    fn look(&self, state: usize, seen: &mut [bool]) -> Tokens {
        if std::mem::replace(&mut seen[state], true) {
            return Tokens::NONE;
        }
        let node = &self.nodes[state];
        if node.role == Role::RuleStop {
            return Tokens::END_OF_RULE;
        }
        node.edges.iter().fold(Tokens::NONE, |found, edge| {
            found.and(match edge.via {
                Via::Token(tokens, _) => tokens,
                _ => self.look(usize::from(edge.to), seen),
            })
        })
    }
}
