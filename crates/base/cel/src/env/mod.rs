//! Environments: the functions, macros, variables and types that expressions may use.
//!
//! Environments share a base with everything that libraries declare, which is collected once. They
//! differ in a few variables and types, so extending an environment costs no more than copying a
//! short list.

mod kubernetes;

use crate::check::{self, CheckedExpression};
use crate::library::{FunctionLibrary, Overload};
use crate::source::Issues;
use crate::syntax::ast::ParsedExpression;
use crate::syntax::{self, Macro};
use crate::types::Type;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// An environment: what expressions may use.
#[derive(Clone, Debug)]
pub struct Env {
    base: Arc<Base>,
    variables: Vec<(Arc<str>, Type)>,
    types: Vec<(Arc<str>, Type)>,
}

/// The options of an environment.
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
#[derive(Clone, Debug, Default)]
pub struct EnvOptions {
    /// The namespace in which names are looked up first (`a.b`); empty for none.
    pub container: String,
    /// Whether `a.?b`, `a[?b]`, `[?a]` and `{?a: b}` are allowed.
    pub optional_syntax: bool,
    /// Whether names in backquotes are allowed.
    pub quoted_names: bool,
    /// Whether `<`, `<=`, `>`, `>=` compare numbers of different types.
    pub cross_type_numeric: bool,
    /// Whether list and map literals must have elements of one type, except in arguments of
    /// `format`.
    pub homogeneous_literals: bool,
    /// Whether literal durations, timestamps, regular expressions and texts of `format` (up to
    /// version 3 of the string library) are validated when an expression is compiled.
    pub literal_validators: bool,
}

/// The part that environments share.
#[derive(Debug)]
struct Base {
    options: EnvOptions,
    functions: HashMap<&'static str, Vec<Arc<Overload>>>,
    types: HashMap<&'static str, Type>,
    macros: Vec<Macro>,
    /// The first parts of the dotted names of types.
    dotted_names: HashSet<&'static str>,
    /// The first parts of the dotted names of functions.
    dotted_functions: HashSet<&'static str>,
}

/// The part of a name before its first dot.
fn first_part(name: &str) -> Option<&str> {
    name.split_once('.').map(|(first, _)| first)
}

impl Env {
    /// An environment with the functions, macros and types of libraries, without variables.
    ///
    /// A function of several libraries has the overloads of all of them, in the order of libraries.
    pub fn new(libraries: &[&FunctionLibrary], options: EnvOptions) -> Self {
        let mut base = Base {
            options,
            functions: HashMap::new(),
            types: HashMap::new(),
            macros: Vec::new(),
            dotted_names: HashSet::new(),
            dotted_functions: HashSet::new(),
        };
        for library in libraries {
            for overload in (library.overloads)() {
                base.functions.entry(overload.function).or_default().push(Arc::new(overload));
            }
            base.types.extend((library.types)());
            base.macros.extend_from_slice(library.macros);
        }
        base.dotted_names.extend(base.types.keys().filter_map(|name| first_part(name)));
        base.dotted_functions.extend(base.functions.keys().filter_map(|name| first_part(name)));
        Self { base: Arc::new(base), variables: Vec::new(), types: Vec::new() }
    }

    /// This environment with a variable, which replaces one of the same name.
    #[must_use]
    pub fn with_variable(&self, name: &str, value: Type) -> Self {
        let mut env = self.clone();
        env.variables.retain(|(existing, _)| &**existing != name);
        env.variables.push((name.into(), value));
        env
    }

    /// This environment with a type that expressions can name, which replaces one of the same name.
    #[must_use]
    pub fn with_type(&self, name: &str, value: Type) -> Self {
        let mut env = self.clone();
        env.types.retain(|(existing, _)| &**existing != name);
        env.types.push((name.into(), value));
        env
    }

    /// Parses an expression.
    ///
    /// # Errors
    ///
    /// As [`syntax::parse`].
    pub fn parse(&self, text: &str) -> Result<ParsedExpression, Issues> {
        let Base { options, macros, .. } = &*self.base;
        let options = syntax::Options {
            macros,
            optional: options.optional_syntax,
            quoted_names: options.quoted_names,
        };
        syntax::parse(text, &options)
    }

    /// Parses and checks an expression.
    ///
    /// # Errors
    ///
    /// As [`Self::parse`], then as [`Self::check`].
    pub fn compile(&self, text: &str) -> Result<CheckedExpression, Issues> {
        self.check(self.parse(text)?)
    }

    /// Checks an expression: resolves its names and types.
    ///
    /// # Errors
    ///
    /// All errors, with cel-go's messages and positions.
    pub fn check(&self, parsed: ParsedExpression) -> Result<CheckedExpression, Issues> {
        check::check(self, parsed)
    }

    /// Its options.
    pub fn options(&self) -> &EnvOptions {
        &self.base.options
    }

    /// Its macros.
    pub fn macros(&self) -> &[Macro] {
        &self.base.macros
    }

    /// The overloads of a function, by its full name.
    pub fn function(&self, name: &str) -> Option<&[Arc<Overload>]> {
        self.base.functions.get(name).map(Vec::as_slice)
    }

    /// The overloads of all functions, in the order of their ids.
    pub fn functions(&self) -> impl Iterator<Item = &Arc<Overload>> {
        let mut all: Vec<_> = self.base.functions.values().flatten().collect();
        all.sort_by_key(|overload| overload.id);
        all.into_iter()
    }

    /// The type of a variable, by its full name.
    pub fn variable(&self, name: &str) -> Option<&Type> {
        self.variable_entry(name).map(|(_, value)| value)
    }

    pub(crate) fn variable_entry(&self, name: &str) -> Option<&(Arc<str>, Type)> {
        self.variables.iter().find(|(existing, _)| &**existing == name)
    }

    /// Whether a name that begins with `root` and a dot may be a variable or a type.
    pub(crate) fn has_dotted_names(&self, root: &str) -> bool {
        let root = root.strip_prefix('.').unwrap_or(root);
        let has_root = |(name, _): &(Arc<str>, Type)| first_part(name) == Some(root);
        !self.base.options.container.is_empty()
            || self.base.dotted_names.contains(root)
            || self.variables.iter().any(has_root)
            || self.types.iter().any(has_root)
    }

    /// Whether a name that begins with `root` and a dot may be a function.
    pub(crate) fn has_dotted_functions(&self, root: &str) -> bool {
        let root = root.strip_prefix('.').unwrap_or(root);
        !self.base.options.container.is_empty() || self.base.dotted_functions.contains(root)
    }

    /// The type that a full name denotes (`int`, `net.IP`).
    pub fn named_type(&self, name: &str) -> Option<&Type> {
        self.types
            .iter()
            .find(|(existing, _)| &**existing == name)
            .map(|(_, value)| value)
            .or_else(|| self.base.types.get(name))
    }

    /// The full names that a name may stand for, the most specific first: names in the container
    /// and its parents, then the name itself. A name with a leading dot stands only for itself.
    pub fn candidates<'a>(
        &'a self,
        name: &'a str,
    ) -> impl Iterator<Item = std::borrow::Cow<'a, str>> {
        let (relative, mut container) = match name.strip_prefix('.') {
            Some(relative) => (relative, None),
            None => (name, Some(self.base.options.container.as_str())),
        };
        std::iter::from_fn(move || {
            let within = container?;
            container = None;
            if within.is_empty() {
                return None;
            }
            container = Some(within.rsplit_once('.').map_or("", |(outer, _)| outer));
            Some(format!("{within}.{relative}").into())
        })
        .chain(std::iter::once(relative.into()))
    }
}
