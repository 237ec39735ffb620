//! Which bundle a ClusterExtension gets, as OLM v1 decides it.
//!
//! [`resolve`] is a pure function of a [`Request`] (`spec.source.catalog`), what is [`Installed`],
//! and the [`Catalog`]s of the cluster. The order of catalogs, labels, bundles and entries has no
//! influence, not on a byte of the answer.
//!
//! ```text
//! catalogs ─► selector, availability ─► per catalog: channels, range, edges ─► its best bundle ─┐
//!                                                                                               ▼
//!                        Choice ◄── dependencies ◄── priority ◄── deprecated ones only if no other
//! ```
//!
//! * A bundle fits if it is in one of the channels (if any are named), its version in the range (if
//!   there is one), and, where edges count, if it is what is installed or a direct successor of it.
//! * The best of a catalog is the one with the highest version and release that is not deprecated,
//!   or the highest deprecated one.
//! * Between catalogs, deprecation is looked at before priority: a bundle that is not deprecated
//!   wins over deprecated ones from catalogs of any priority. Equal priorities at the top are an
//!   error, never a guess.
//! * A catalog that cannot be read blocks only what it might have changed: an answer stands if it is
//!   not deprecated and comes from a catalog of higher priority.
//!
//! A [`Failure`] has upstream's message, byte for byte, and a [`Cause`] for people: what was
//! considered in each catalog, why each bundle fell, and [`Repair`]s, each of which was tried.
//!
//! ```
//! use mainstay_resolver::extension::{self, Bundle, Catalog, Content, Offer, Request};
//! use mainstay_updates::{Edges, Graph};
//!
//! let versions = ["1.0.0", "1.1.0"];
//! let mut graph = Graph::builder("argocd");
//! for version in versions {
//!     graph = graph.entry("stable", &format!("argocd.v{version}"), Edges::default());
//! }
//! let bundle = |version: &str| Bundle {
//!     name: format!("argocd.v{version}").into(),
//!     version: version.into(),
//!     ..Bundle::default()
//! };
//! let offer = Offer::new(graph.finish(), versions.map(bundle));
//! let catalogs = [Catalog::new("community", Content::Offer(Some(&offer)))];
//! let mut request = Request { package: "argocd".to_owned(), ..Request::default() };
//!
//! let choice = extension::resolve(&request, None, &catalogs).unwrap();
//! assert_eq!(&*choice.bundle, "argocd.v1.1.0");
//!
//! "2.x".clone_into(&mut request.version);
//! let failure = extension::resolve(&request, None, &catalogs).unwrap_err();
//! assert_eq!(failure.message, r#"no bundles found for package "argocd" matching version "2.x""#);
//! ```
//!
//! What this does not do: unpack, render or apply bundles, write conditions, or talk to anything.
//!
//! [`Cause`]: mainstay_cause::Cause

mod consequence;
mod explain;
mod offer;
mod pick;
mod repair;
mod request;
mod route;
mod texts;
mod verdict;

pub use consequence::{Consequence, consequence};
pub use offer::{Bundle, Deprecation, Offer, VersionError};
pub use pick::{Choice, Considered, Failure, FailureKind, State, resolve};
pub use repair::{Change, Repair};
pub use request::{Catalog, Content, Installed, NAME_LABEL, Policy, Request};
pub use verdict::{Fell, Verdict};
