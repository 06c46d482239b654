//! Runs the checks of all fuzz targets over their seeds, without a fuzzer.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{fs, path::Path};

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz/seeds")
        .join(target);
    let seeds: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|seed| fs::read(seed.unwrap().path()).unwrap())
        .collect();
    assert!(!seeds.is_empty());
    seeds
}

#[test]
fn events_json_holds_for_every_cut_of_its_seeds() {
    for seed in seeds("events_json") {
        (0..=seed.len()).for_each(|length| fuzz_checks::events_json(&seed[..length]));
    }
}

#[test]
fn tool_output_holds_for_every_cut_of_its_seeds() {
    for seed in seeds("tool_output") {
        (0..=seed.len()).for_each(|length| fuzz_checks::tool_output(&seed[..length]));
    }
}

#[test]
fn uris_hold_for_every_line_of_their_seeds() {
    for seed in seeds("uris") {
        let seed = String::from_utf8(seed).unwrap();
        seed.lines().chain([&*seed]).for_each(fuzz_checks::uris);
    }
}

#[test]
fn templates_hold_for_every_cut_of_every_pair_of_their_seeds() {
    for seed in seeds("templates") {
        let seed = String::from_utf8(seed).unwrap();
        for (template, uri) in seed.lines().filter_map(|line| line.split_once(' ')) {
            let pair = format!("{template}\n{uri}");
            (0..=pair.len())
                .filter_map(|length| pair.get(..length))
                .for_each(fuzz_checks::templates);
        }
    }
}

#[test]
fn template_sets_hold_for_every_uri_of_their_seeds_and_every_cut_of_it() {
    let seeds: Vec<_> = seeds("template_sets")
        .into_iter()
        .map(|seed| String::from_utf8(seed).unwrap())
        .collect();
    for (templates, _) in seeds.iter().filter_map(|seed| seed.rsplit_once('\n')) {
        for (_, uri) in seeds.iter().filter_map(|seed| seed.rsplit_once('\n')) {
            (0..=uri.len()).for_each(|length| {
                fuzz_checks::template_sets(&format!("{templates}\n{}", &uri[..length]))
            });
        }
    }
}

#[test]
fn declarations_hold_for_every_line_of_their_seeds() {
    for seed in seeds("declarations") {
        let seed = String::from_utf8(seed).unwrap();
        seed.lines()
            .chain([&*seed])
            .for_each(fuzz_checks::declarations);
    }
}

#[test]
fn view_holds_for_every_whole_event_of_its_seeds() {
    for seed in seeds("view").into_iter().chain(seeds("events_json")) {
        let ends = seed
            .iter()
            .enumerate()
            .filter(|(_, byte)| matches!(byte, b'\n' | b'}'));
        ends.for_each(|(end, _)| fuzz_checks::view(&seed[..=end]));
        fuzz_checks::view(&seed);
    }
}

/// The gate doesn't compile the targets, which need libFuzzer.
#[test]
fn every_check_has_a_target() {
    let targets = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/fuzz_targets");
    for check in [
        "declarations",
        "events_json",
        "template_sets",
        "templates",
        "tool_output",
        "uris",
        "view",
    ] {
        let target = fs::read_to_string(targets.join(format!("{check}.rs"))).unwrap();
        assert!(
            target.contains(&format!("fuzz_checks::{check}(")),
            "{target}"
        );
    }
}
