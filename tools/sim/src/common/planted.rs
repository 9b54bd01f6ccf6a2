//! Names for faults that are planted on purpose.

/// An enum of planted faults, each with what it does, that knows all of them and reads their names.
macro_rules! mutations {
    ($($(#[doc = $doc:literal])* $name:ident),* $(,)?) => {
        /// A planted fault.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Mutation { $($(#[doc = $doc])* $name),* }

        impl Mutation {
            /// Every planted fault.
            pub const ALL: &[Mutation] = &[$(Mutation::$name),*];
        }

        impl std::str::FromStr for Mutation {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                let found = Self::ALL.iter().copied().find(|mutation| format!("{mutation:?}") == text);
                found.ok_or_else(|| format!("no mutation {text}; there are: {:?}", Self::ALL))
            }
        }
    };
}

pub(crate) use mutations;
