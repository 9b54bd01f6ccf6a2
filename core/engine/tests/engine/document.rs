//! The examples of `docs/matching.md`, run.
//!
//! A block of the document that begins with "```script" is a [`crate::script`]. What follows the word are the instrument's terms:
//! `collar=PPM`, `band=PPM`, `fees=MAKER/TAKER` (parts per million), `allocation=NAME:NUMBERS`.

use walras_types::{Allocation, FeeSchedule, InstrumentSpec};

use crate::script::check;
use crate::venue::{lots, spec};

const DOCUMENT: &str = include_str!("../../../../docs/matching.md");

/// The terms and the text of each script.
fn scripts(document: &str) -> Vec<(&str, &str)> {
    let blocks = document.split("\n```").skip(1).step_by(2);
    blocks.filter_map(|block| block.strip_prefix("script")).map(|block| block.split_once('\n').unwrap()).collect()
}

fn instrument(terms: &str) -> InstrumentSpec {
    let mut spec = spec(0);
    for term in terms.split_whitespace() {
        let (name, value) = term.split_once('=').unwrap();
        let number = |text: &str| text.parse::<i64>().unwrap();
        match name {
            "collar" => spec.collar_ppm = number(value) as u32,
            "band" => spec.band_ppm = number(value) as u32,
            "fees" => {
                let (maker, taker) = value.split_once('/').unwrap();
                spec.fees = FeeSchedule { maker_ppm: number(maker) as i32, taker_ppm: number(taker) as i32 };
            }
            "allocation" => spec.allocation = allocation(&value.split(':').collect::<Vec<_>>()),
            _ => panic!("no such term: {term}"),
        }
    }
    spec
}

fn allocation(words: &[&str]) -> Allocation {
    let number = |text: &str| text.parse::<u64>().unwrap();
    match *words {
        ["pro_rata", min] => Allocation::ProRata { min_lots: lots(number(min)) },
        ["top_pro_rata", top, min] => Allocation::TopProRata { top_lots_max: lots(number(top)), min_lots: lots(number(min)) },
        ["split", percent, min] => Allocation::Split { fifo_percent: number(percent) as u8, min_lots: lots(number(min)) },
        _ => panic!("no such allocation: {words:?}"),
    }
}

#[test]
fn the_examples_of_the_document_happen() {
    let scripts = scripts(DOCUMENT);
    assert_eq!(scripts.len(), DOCUMENT.matches("\n```script").count(), "every example is found");
    assert!(scripts.len() >= 16, "{}", scripts.len());
    for (terms, script) in scripts {
        check(instrument(terms), script);
    }
}
