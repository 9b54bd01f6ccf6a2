//! Hash trees and proofs against the definitions of their roots.

mod accounts;
mod proofs;
mod trie;
