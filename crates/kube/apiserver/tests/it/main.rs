//! The server as its clients meet it: HTTP requests in, HTTP answers out, without a socket.

mod crud;
mod definitions;
mod deletes;
mod discovery;
mod harness;
mod lists;
mod patches;
mod subresources;
mod watches;
