//! What the texts of refusals are held to.

/// What an advice asks for, in the imperative.
const WHAT_TO_DO: &[&str] = &[
    "add",
    "ask",
    "cancel",
    "check",
    "choose",
    "clear",
    "create",
    "deposit",
    "free",
    "give",
    "issue",
    "leave",
    "list",
    "look",
    "lower",
    "name",
    "number",
    "open",
    "read",
    "see",
    "send",
    "sign",
    "slow",
    "spend",
    "split",
    "synchronise",
    "try",
    "use",
    "wait",
];

/// Whether a text says what is wrong, then what to do: of the clauses behind its first colon, one begins with an imperative.
pub(crate) fn says_what_to_do(advice: &str) -> bool {
    let Some((wrong, rest)) = advice.split_once(": ") else { return false };
    let mut clauses = rest.split([';', ',', ':', '(']).map(str::trim_start);
    let begins = |clause: &str| {
        let clause = clause.strip_prefix("or ").or(clause.strip_prefix("and ")).unwrap_or(clause);
        let first = clause.split(|c: char| !c.is_alphabetic()).next().unwrap_or("");
        WHAT_TO_DO.contains(&first)
    };
    !wrong.is_empty() && clauses.any(begins)
}

#[test]
fn a_text_that_only_says_what_is_wrong_is_found() {
    for without in
        ["The book cannot fill the whole order now.", "There is nothing at this address.", "It is full: nothing can be created."]
    {
        assert!(!says_what_to_do(without), "{without}");
    }
    assert!(says_what_to_do("It was filled: nothing is left of it; look at the fills."));
}
