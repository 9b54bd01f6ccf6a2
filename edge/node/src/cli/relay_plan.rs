//! `walras relay plan`: how deep and how wide a tree for so many receivers is, by the rule and by what sending costs.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};
use walras_relay::tree::{Costs, Tree};
use walras_terminal::table::table;

use super::{CliError, Output};

/// Nanoseconds of a hop, at the median of a cloud's network and with what our relay takes to receive, of its jitter (table 7 of
/// `experiments/jasper-2024`), and of one more copy of our relay where the kernel cuts packets (J5 there, `Hosts::SEGMENTED`).
const MEASURED: Costs = Costs { hop: 30_570, jitter: 15_790, copy: 350 };
/// The port in the skeleton.
const PORT: u16 = 7_400;

/// `walras relay plan`.
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// How many receivers the tree has.
    #[arg(long, value_name = "N")]
    pub receivers: u32,
    /// Additional copies of each packet, by other relays.
    #[arg(long, default_value_t = 1)]
    pub hedge: u32,
    /// What sending costs on your machines: a TOML file with `hop_ns`, from one node to the next at the median, `jitter_ns`, by how much
    /// one packet of ten takes longer, and `copy_ns`, one more copy of a packet at the same node. Without it what was measured on one
    /// cloud.
    #[arg(long, value_name = "FILE")]
    pub costs: Option<PathBuf>,
    /// Where to write the tree's file by the costs, with names to replace by addresses. An existing file is left as it is.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// The file of costs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CostsFile {
    hop_ns: u64,
    /// Without it all hops take the same.
    #[serde(default)]
    jitter_ns: u64,
    copy_ns: u64,
}

pub(super) fn plan(args: &PlanArgs) -> Result<Output, CliError> {
    let wrong = |error: &dyn std::fmt::Display| CliError::Wrong(error.to_string());
    if args.hedge > walras_relay::tree::HEDGE_MAX {
        let most = walras_relay::tree::HEDGE_MAX;
        return Err(CliError::Wrong(format!("--hedge {}: a packet has at most {most} additional copies", args.hedge)));
    }
    let costs = args.costs.as_deref().map_or(Ok(MEASURED), read)?;
    let by_rule = Tree::by_heuristic(args.receivers).map_err(|error| wrong(&error))?;
    let by_costs = Tree::by_cost(args.receivers, args.hedge, costs).map_err(|error| wrong(&error))?;
    let rows = [row("rule", &by_rule, args.hedge, costs), row("costs", &by_costs, args.hedge, costs)];
    let columns = [
        ("by", "by"),
        ("layers", "layers"),
        ("widest fan-out", "fan_out_max"),
        ("relays", "relays"),
        ("slowest receiver, us", "slowest_us"),
    ];
    let shown: Vec<Value> = rows.iter().map(for_people).collect();
    let mut human = table(&shown, &columns);
    let Costs { hop, jitter, copy } = costs;
    let whose = if args.costs.is_some() { "of your file" } else { "measured on one cloud: measure yours, and give --costs" };
    let _ = writeln!(human, "A hop of {hop} ns with a jitter of {jitter} ns, and a copy of {copy} ns, {whose}.");
    if let Some(out) = &args.out {
        write(out, &skeleton(&by_costs, args.hedge))?;
        let _ = writeln!(human, "{} has the tree by costs: replace its names by addresses, and make its key.", out.display());
    }
    let (receivers, hedge) = (args.receivers, args.hedge);
    let json = json!({"receivers": receivers, "hedge": hedge, "hop_ns": hop, "jitter_ns": jitter, "copy_ns": copy, "plans": rows});
    Ok(Output { human, json })
}

fn read(path: &Path) -> Result<Costs, CliError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| CliError::Io { what: format!("could not read {}", path.display()), source })?;
    let wrong = |detail: String| CliError::Wrong(format!("{}: {detail}", path.display()));
    let CostsFile { hop_ns, jitter_ns, copy_ns } = toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    // More than a minute is a wrong unit, and would not fit the sum.
    let most = 60_000_000_000;
    if hop_ns.max(jitter_ns).max(copy_ns) > most {
        return Err(wrong(format!("hop_ns, jitter_ns and copy_ns are nanoseconds, at most {most}")));
    }
    Ok(Costs { hop: hop_ns, jitter: jitter_ns, copy: copy_ns })
}

fn row(by: &str, tree: &Tree, hedge: u32, costs: Costs) -> Value {
    let widths: Vec<u32> = [1].into_iter().chain(tree.layers().iter().copied()).collect();
    let fan_out = widths.windows(2).map(|pair| pair[1].div_ceil(pair[0])).max();
    json!({
        "by": by,
        "layers": tree.layers(),
        "fan_out_max": fan_out,
        "relays": tree.relays(),
        "slowest_ns": tree.longest(hedge, costs),
    })
}

/// The same as a row of the table.
fn for_people(row: &Value) -> Value {
    let mut shown = row.as_object().cloned().unwrap_or_default();
    let layers: Vec<String> = row["layers"].as_array().into_iter().flatten().map(ToString::to_string).collect();
    shown.insert("layers".to_owned(), layers.join(" + ").into());
    let us = row["slowest_ns"].as_u64().map(|ns| ns as f64 / 1e3);
    shown.insert("slowest_us".to_owned(), us.map(|us| format!("{us:.1}")).into());
    shown.into()
}

/// The tree's file, with names where addresses belong, so that nobody starts it as it is.
fn skeleton(tree: &Tree, hedge: u32) -> String {
    let mut text = format!(
        "# Replace each name by the address of a machine, such as 10.0.0.1:{PORT}. All machines of the tree get this file.\n\
         tree = 1\nhedge = {hedge}\nkey_file = \"tree.key\" # openssl rand -hex 32 > tree.key\nlayers = [\n"
    );
    let last = tree.depth() - 1;
    for (layer, width) in tree.layers().iter().enumerate() {
        let name = |place: u32| {
            if layer == last {
                format!("    \"receiver-{place}:{PORT}\",\n")
            } else {
                format!("    \"relay-{layer}-{place}:{PORT}\",\n")
            }
        };
        let nodes: String = (0..*width).map(name).collect();
        let _ = write!(text, "  [\n{nodes}  ],\n");
    }
    text.push_str("]\n");
    text
}

fn write(path: &Path, text: &str) -> Result<(), CliError> {
    let failed = |source| CliError::Io { what: format!("could not write {}", path.display()), source };
    let mut file = std::fs::File::create_new(path).map_err(failed)?;
    std::io::Write::write_all(&mut file, text.as_bytes()).map_err(failed)
}

#[cfg(test)]
mod tests {
    use walras_relay_link::Layout;

    use super::*;

    fn args(receivers: u32) -> PlanArgs {
        PlanArgs { receivers, hedge: 1, costs: None, out: None }
    }

    #[test]
    fn the_rule_and_the_costs_are_shown() {
        let Output { human, json } = plan(&args(1_000)).unwrap();
        assert_eq!(json["plans"][0]["layers"], json!([10, 100, 1_000]));
        assert_eq!((&json["plans"][0]["fan_out_max"], &json["plans"][0]["relays"]), (&json!(10), &json!(110)));
        assert!(json["plans"][1]["slowest_ns"].as_u64() <= json["plans"][0]["slowest_ns"].as_u64(), "{json}");
        assert!(human.contains("10 + 100 + 1000") && human.contains("measure yours"), "{human}");
        // Where copies cost next to nothing, one layer is best; where hops do, many.
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("costs.toml");
        for (costs, layers) in [("hop_ns = 1000000\ncopy_ns = 1", 1), ("hop_ns = 1\ncopy_ns = 1000000", 5)] {
            std::fs::write(&file, costs).unwrap();
            let said = plan(&PlanArgs { costs: Some(file.clone()), ..args(1_000) }).unwrap();
            let planned = said.json["plans"][1]["layers"].as_array().unwrap().len();
            assert!(if layers == 1 { planned == 1 } else { planned >= layers }, "{costs}: {}", said.json);
            assert!(said.human.contains("of your file"), "{}", said.human);
        }
        // What a hop's jitter is need not be known: then it counts as none.
        for (jitter, layers) in [("", json!([100])), ("jitter_ns = 15790\n", json!([10, 100]))] {
            std::fs::write(&file, format!("hop_ns = 30570\n{jitter}copy_ns = 350")).unwrap();
            let said = plan(&PlanArgs { costs: Some(file.clone()), ..args(100) }).unwrap();
            assert_eq!(said.json["plans"][1]["layers"], layers, "{}", said.json);
        }
    }

    #[test]
    fn a_written_tree_is_refused_until_its_names_are_addresses() {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("tree.toml");
        plan(&PlanArgs { out: Some(out.clone()), ..args(30) }).unwrap();
        std::fs::write(folder.path().join("tree.key"), "0a".repeat(32)).unwrap();
        let refused = Layout::read(&out).unwrap_err().to_string();
        assert!(refused.contains("7400") && refused.contains("socket address"), "{refused}");
        let again = plan(&PlanArgs { out: Some(out.clone()), ..args(30) }).unwrap_err().to_string();
        assert!(again.contains("could not write"), "{again}");
        // Each name becomes an address of its own.
        let (mut port, mut replaced) = (10_000, String::new());
        for line in std::fs::read_to_string(&out).unwrap().lines() {
            if line.starts_with("    \"") {
                port += 1;
                let _ = writeln!(replaced, "    \"127.0.0.1:{port}\",");
            } else {
                let _ = writeln!(replaced, "{line}");
            }
        }
        std::fs::write(&out, replaced).unwrap();
        let layout = Layout::read(&out).unwrap();
        let planned = Tree::by_cost(30, 1, MEASURED).unwrap();
        assert_eq!((layout.tree.layers(), layout.hedge), (planned.layers(), 1));
    }

    #[test]
    fn what_cannot_be_planned_says_what_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("costs.toml");
        let with = |text: &str| {
            std::fs::write(&file, text).unwrap();
            plan(&PlanArgs { costs: Some(file.clone()), ..args(10) }).unwrap_err().to_string()
        };
        for (error, says) in [
            (plan(&args(0)).unwrap_err().to_string(), "receivers"),
            (plan(&args(u32::MAX)).unwrap_err().to_string(), "split them over several trees"),
            (plan(&PlanArgs { hedge: 9, ..args(10) }).unwrap_err().to_string(), "at most 8"),
            (with("hop_ns = 1"), "copy_ns"),
            (with("hop_ns = -1\ncopy_ns = 1"), "hop_ns"),
            (with("hop_ns = 1\ncopy_ns = 90000000000"), "nanoseconds, at most"),
            (with("hop_ns = 1\njitter_ns = 90000000000\ncopy_ns = 1"), "nanoseconds, at most"),
        ] {
            assert!(error.contains(says), "{error}");
        }
        let missing = PlanArgs { costs: Some(folder.path().join("none.toml")), ..args(10) };
        assert!(plan(&missing).unwrap_err().to_string().contains("could not read"));
    }
}
