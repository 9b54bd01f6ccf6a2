//! What planted faults do to FIX messages on their way.

use super::message::{Received, end_of_message, written_in};

/// Reports that are sent again are left out, and gap fills stand in their places, so that no number is missing.
pub(in crate::cluster) fn without_resent_reports(bytes: &[u8]) -> Vec<u8> {
    let (mut rest, mut others) = (bytes, Vec::new());
    while let Some(end) = end_of_message(rest) {
        let (whole, after) = rest.split_at(end);
        rest = after;
        let message = Received::of(whole).filter(|message| message.is_possible_duplicate() && message.text(35) == "8");
        match message.as_ref().and_then(|message| Some((message, message.number(34)?))) {
            Some((message, seq)) => {
                let [own, time, target, first] = [49, 52, 56, 122].map(|tag| message.text(tag).to_owned());
                let next = seq + 1;
                let fields = format!("35=4|34={seq}|43=Y|49={own}|52={time}|56={target}|122={first}|123=Y|36={next}|");
                others.extend(written_in(message.text(8), &fields));
            }
            None => others.extend_from_slice(whole),
        }
    }
    others.extend_from_slice(rest);
    others
}
