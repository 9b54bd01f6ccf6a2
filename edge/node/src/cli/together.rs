//! `walras batch together`: several transactions that all count, or none does.

use clap::error::ErrorKind;
use clap::{Parser, Subcommand};
use serde_json::{Value, json};
use walras_client::ClientError;
use walras_terminal::table::table;
use walras_types::limits::TRANSACTIONS_PER_ACCOUNT_MAX;
use walras_types::{BatchOperation, RejectReason};

use super::args::{BatchCommand, OfferCommand, PayArgs, PoolCommand};
use super::batch::{offer_operation, operation, payment, wrong};
use super::batch_signer::BatchSigner;
use super::pool::pool_operation;
use super::{CliError, Output};

/// One of the transactions, as its own command line has it.
#[derive(Debug, Parser)]
#[command(name = "walras", no_binary_name = true, disable_help_flag = true, disable_help_subcommand = true)]
struct Line {
    #[command(subcommand)]
    command: Command,
}

/// The commands that make transactions, by the names that `args::Command` has for them. Without `about`s: nobody sees their help.
#[derive(Debug, Subcommand)]
enum Command {
    #[command(subcommand)]
    Offer(OfferCommand),
    #[command(subcommand)]
    Pool(PoolCommand),
    Pay(PayArgs),
    #[command(subcommand)]
    Batch(BatchCommand),
}

/// Signs what each line says, joins all of it, and sends it.
pub(super) fn together(signer: &BatchSigner<'_>, lines: &[String]) -> Result<Output, CliError> {
    if lines.len() < 2 || lines.len() as u64 > TRANSACTIONS_PER_ACCOUNT_MAX {
        let message = format!("give 2 to {TRANSACTIONS_PER_ACCOUNT_MAX} transactions, each in quotes, such as \"pay 7 12.5 EUR\"");
        return Err(wrong(message));
    }
    let parsed: Vec<Line> = lines.iter().map(|line| parse(line)).collect::<Result<_, _>>()?;
    let operations: Vec<BatchOperation> =
        lines.iter().zip(&parsed).map(|(line, parsed)| operation_of(signer, line, parsed)).collect::<Result<_, _>>()?;
    let mut results = signer.post(&operations)?;
    if let Some(refused) = refusal(lines, &results) {
        return Err(refused.into());
    }
    results.iter_mut().zip(lines).for_each(|(result, line)| result["transaction"] = line.as_str().into());
    let columns = [("number", "sequence"), ("block", "block"), ("transaction", "transaction")];
    Ok(Output { human: table(&results, &columns), json: json!({ "transactions": results }) })
}

/// What is refused for one of these may be in the log all the same.
const IN_DOUBT: [RejectReason; 3] = [RejectReason::VenueNotReady, RejectReason::StorageFull, RejectReason::NotLeader];

/// Why they do not count, if they do not. They are a chain, so none of them counts where one is refused for good.
fn refusal(lines: &[String], results: &[Value]) -> Option<ClientError> {
    let refused = lines.iter().zip(results).filter_map(|(line, result)| Some((line, ClientError::of_body(409, result)?)));
    let mut refused: Vec<(&String, ClientError)> = refused.collect();
    // What is refused since another one is says nothing of what is wrong.
    refused.sort_by_key(|(_, refused)| refused.is(RejectReason::JoinedRefused));
    let is_in_doubt = refused.iter().all(|(_, refused)| IN_DOUBT.iter().any(|reason| refused.is(*reason)));
    let counts =
        if is_in_doubt { "so it is not known whether they count: see `walras batch outcome`" } else { "so none of them counts" };
    let (line, ClientError::Refused { status, code, name, message, detail, leader }) = refused.into_iter().next()? else {
        return None;
    };
    let message = format!("{line:?}: {message}; {counts}");
    Some(ClientError::Refused { status, code, name, message, detail, leader })
}

/// The words of a line are separated by blanks.
fn parse(line: &str) -> Result<Line, CliError> {
    let mut words: Vec<&str> = line.split_whitespace().collect();
    if words.first() == Some(&"walras") {
        words.remove(0);
    }
    let of_all =
        |word: &&str| ["--batch", "--blocks"].iter().any(|option| *word == *option || word.starts_with(&format!("{option}=")));
    if let Some(option) = words.iter().copied().find(of_all) {
        return Err(wrong(format!("{line:?}: {option} holds for all of them: give it outside of the quotes")));
    }
    Line::try_parse_from(words).map_err(|error| {
        // Of a command that lacks its last words clap shows the help.
        if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
            return wrong(format!("{line:?} is not a whole command: write it as for `walras`, such as \"pay 7 12.5 EUR\""));
        }
        let text = error.to_string();
        let said = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
        wrong(format!("{line:?}: {said}"))
    })
}

fn operation_of(signer: &BatchSigner<'_>, line: &str, parsed: &Line) -> Result<BatchOperation, CliError> {
    let found = match &parsed.command {
        Command::Offer(command) => offer_operation(signer, command)?,
        Command::Pool(command) => pool_operation(signer, command)?,
        Command::Pay(args) => Some(payment(signer, args)?),
        Command::Batch(command) => operation(signer, command)?,
    };
    found.ok_or_else(|| wrong(format!("{line:?} is no transaction: offers, payments, pools, accounts, keys, issues and burns are")))
}

#[cfg(test)]
mod tests {
    use walras_types::DropReason;

    use super::*;

    fn said(line: &str) -> String {
        parse(line).map(|_| ()).unwrap_err().to_string()
    }

    #[test]
    fn the_refusal_says_what_is_wrong_and_what_counts() {
        let lines = ["pay 1 1 USD", "batch issue 5 USD", "pay 2 1 USD"].map(str::to_owned);
        let taken = json!({"sequence": "1", "block": "7"});
        let error = |code: u16, detail: &str| json!({"error": {"code": code, "name": "Name", "message": "no", "detail": detail}});
        let torn = |place: usize| {
            let detail = format!("transactions[{place}]: {}", DropReason::JoinedDropped.advice());
            error(RejectReason::JoinedRefused.number(), &detail)
        };
        let forbidden = error(108, "transactions[1]: not the issuer");
        let said = |results: &[Value]| refusal(&lines, results).map(|refused| refused.to_string());
        assert_eq!(said(&[taken.clone(), taken.clone(), taken.clone()]), None);
        let all = said(&[torn(0), forbidden.clone(), torn(2)]).unwrap();
        assert!(all.contains("\"batch issue 5 USD\": no; so none of them counts") && all.contains("not the issuer"), "{all}");
        // The log refuses one, and has taken the others.
        for results in [[taken.clone(), error(50, "full"), taken.clone()], [taken.clone(), torn(1), error(50, "full")]] {
            let late = said(&results).unwrap();
            assert!(late.contains("no; so none of them counts") && late.contains("full"), "{late}");
        }
        let in_doubt = error(110, "starting");
        assert!(said(&[taken.clone(), taken.clone(), in_doubt.clone()]).unwrap().contains("it is not known whether they count"));
        assert!(said(&[taken, in_doubt, error(50, "full")]).unwrap().contains("none of them counts"));
        assert!(said(&[torn(0), torn(1), torn(2)]).unwrap().contains("\"pay 1 1 USD\": no"));
    }

    #[test]
    fn a_line_is_a_command_line_without_the_options_of_all() {
        for line in ["pay 7 12.5 EUR", "walras offer sell 1 BTC USD --price 30000", "  batch   issue 5 USD ", "pool withdraw 7:12"]
        {
            assert!(parse(line).is_ok(), "{line}");
        }
        assert!(said("pay 7 12.5 EUR --blocks 20").contains("give it outside of the quotes"));
        assert!(said("offer list --batch=main").contains("--batch=main holds for all"));
        assert!(said("serve").contains("\"serve\": unrecognized subcommand"), "{}", said("serve"));
        assert!(said("pay 7 12.5 EUR --json").contains("--json"));
        for line in ["", "offer"] {
            assert!(said(line).contains("is not a whole command"), "{}", said(line));
        }
    }
}
