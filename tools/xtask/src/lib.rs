//! What the guards share with a test of the program: the tracked files, and what is code in a document.
//!
//! *Start reading* at [`tree::Tree`].

pub mod markdown;
pub mod tree;
