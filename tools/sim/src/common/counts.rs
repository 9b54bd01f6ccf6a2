//! What runs saw, counted.

/// A struct of counts that add up and know their names.
macro_rules! report {
    ($($(#[doc = $doc:literal])* $name:ident),* $(,)?) => {
        /// What a run without a violation saw.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct Report { $($(#[doc = $doc])* pub $name: u64),* }

        impl std::ops::AddAssign for Report {
            fn add_assign(&mut self, other: Self) {
                $(self.$name += other.$name;)*
            }
        }

        impl Report {
            /// All of it, by name.
            #[must_use]
            pub fn fields(&self) -> Vec<(&'static str, u64)> {
                vec![$((stringify!($name), self.$name)),*]
            }
        }
    };
}

pub(crate) use report;
