//! `walras-siege`: see the library, and `docs/siege.md`.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, bail, ensure};
use walras_siege::attack::ATTACKS;
use walras_siege::campaign::Campaign;
use walras_siege::report::{Figures, HEAD, line};

fn usage() -> String {
    let attacks: String = ATTACKS.iter().map(|attack| format!("  {:<22} {}\n", attack.name, attack.about)).collect();
    format!(
        "\
usage: walras-siege [options]     (in the root of the repository; `make siege` builds and calls it)

options
  --program FILE  the program walras [target/release/walras]
  --dir FOLDER    data of the venues that are attacked; removed afterwards [target/siege]
  --shape S       only this kind of venue: single, cluster or tree
  --files N       with at most N descriptors: 0 for no limit; may be given several times [0, 256, 1024]
  --only ATTACK   only this attack; may be given several times
  --rounds N      times without and with each attack, in turn [4]
  --seconds N     of each [2]
  --percent N     of the attacks' full size [100]

attacks
{attacks}
`make bench NAME=siege` runs the attacks without a limit of descriptors, and records their figures.
"
    )
}

fn parse(mut arguments: impl Iterator<Item = String>) -> anyhow::Result<Campaign> {
    let mut campaign = Campaign::full(Path::new("target/release/walras"), Path::new("target/siege"));
    let (mut only, mut descriptors) = (Vec::new(), Vec::new());
    while let Some(option) = arguments.next() {
        let mut value = || arguments.next().with_context(|| format!("{option} needs a value after it\n{}", usage()));
        let number = |text: String| text.parse::<u32>().with_context(|| format!("{option} takes a number\n{}", usage()));
        match option.as_str() {
            "--program" => campaign.program = value()?.into(),
            "--dir" => campaign.dir = value()?.into(),
            "--shape" => {
                let shape = value()?;
                campaign.shapes.retain(|known| known.name() == shape);
                ensure!(!campaign.shapes.is_empty(), "--shape is single, cluster or tree, not {shape}");
            }
            "--files" => descriptors.push(Some(number(value()?)?).filter(|files| *files > 0)),
            "--only" => {
                let name = value()?;
                ensure!(ATTACKS.iter().any(|attack| attack.name == name), "there is no attack {name}\n{}", usage());
                only.push(name);
            }
            "--rounds" => campaign.size.rounds = (number(value()?)? as usize).max(1),
            "--seconds" => campaign.size.block = Duration::from_secs(number(value()?)?.max(1).into()),
            "--percent" => campaign.size.percent = (number(value()?)? as usize).max(1),
            _ => bail!("there is no option '{option}'\n{}", usage()),
        }
    }
    if !only.is_empty() {
        campaign.attacks.retain(|attack| only.iter().any(|name| name == attack.name));
    }
    if !descriptors.is_empty() {
        campaign.descriptors = descriptors;
    }
    Ok(campaign)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // The venue of the tests, which have no other program: it is the same code.
    if arguments.first().is_some_and(|first| ["serve", "log", "gateway", "relay"].contains(&first.as_str())) {
        return walras_node::cli::main();
    }
    if arguments.iter().any(|argument| ["--help", "-h"].contains(&argument.as_str())) {
        print!("{}", usage());
        return ExitCode::SUCCESS;
    }
    println!("{HEAD}");
    match parse(arguments.into_iter()).and_then(|campaign| campaign.run(|outcome| println!("{}", line(outcome)))) {
        Ok(outcomes) => {
            let figures = Figures::of(&outcomes);
            println!("\n{figures}");
            if figures.survived == figures.tried { ExitCode::SUCCESS } else { ExitCode::from(1) }
        }
        Err(error) => {
            eprintln!("walras-siege: {error:#}");
            ExitCode::from(2)
        }
    }
}
