//! One configuration, one source of defaults (`defaults.toml`), checked once.

mod check;
mod values;

pub use values::*;

use crate::error::{Code, Error, Result};
use toml::{Table, Value};

/// The annotated defaults, from which the reference in the docs is generated.
pub const DEFAULTS: &str = include_str!("defaults.toml");
/// Episodes and facts that one turn can make: they are numbered within it.
pub const MADE_AT_ONCE: usize = 256;
const PAPER: &str = include_str!("paper.toml");

/// Resolves a preset with the user's own settings on top and checks the whole.
///
/// `user` is TOML text; sections and keys it does not name keep the preset's value.
pub fn load(preset: &str, user: &str) -> Result<Config> {
    let mut table = defaults();
    match preset {
        "default" => {}
        "paper" => overlay(&mut table, &parse(PAPER)?)?,
        other => {
            return Err(Error::new(
                Code::ConfigPreset,
                format!("no preset is called {other:?}; there are \"default\" and \"paper\""),
            ));
        }
    }
    overlay(&mut table, &parse(user)?)?;
    let config: Config = Value::Table(table).try_into().map_err(|e| {
        Error::new(
            Code::ConfigType,
            // toml's own words come in several lines; an error here is one sentence.
            format!(
                "the configuration is unusable: {}",
                e.to_string().trim().replace('\n', "; ")
            ),
        )
    })?;
    check::ranges(&config)?;
    Ok(config)
}

fn defaults() -> Table {
    parse(DEFAULTS).expect("the embedded defaults are valid TOML")
}

fn parse(text: &str) -> Result<Table> {
    text.parse::<Table>().map_err(|e| {
        let line = e.span().map_or(0, |s| {
            text[..s.start.min(text.len())].lines().count().max(1)
        });
        Error::new(
            Code::ConfigSyntax,
            format!(
                "line {line} of the configuration is not valid TOML: {}",
                e.message()
            ),
        )
    })
}

/// Lays `over` on `base`; a section or key that `base` lacks is an error that
/// names the section of that key, or the nearest one there is.
fn overlay(base: &mut Table, over: &Table) -> Result<()> {
    for (section, value) in over {
        let Some(known) = base.get_mut(section) else {
            if !value.is_table()
                && let Some(home) = home(section)
            {
                return Err(Error::new(
                    Code::ConfigUnknownKey,
                    format!("`{section}` stands in no section; write it under [{home}]"),
                ));
            }
            return Err(unknown("section", section, base.keys(), None));
        };
        overlay_section(section, known, value)?;
    }
    Ok(())
}

/// One section, and the sections in it (`[policy.rpe]`).
fn overlay_section(section: &str, known: &mut Value, value: &Value) -> Result<()> {
    let (Value::Table(known), Value::Table(keys)) = (known, value) else {
        return Err(Error::new(
            Code::ConfigType,
            format!("[{section}] must be a section of keys, not a single value"),
        ));
    };
    for (key, value) in keys {
        let Some(slot) = known.get_mut(key) else {
            let what = format!("key in [{section}]");
            return Err(unknown(&what, key, known.keys(), home(key)));
        };
        if slot.is_table() {
            overlay_section(&format!("{section}.{key}"), slot, value)?;
        } else {
            *slot = coerce(section, key, slot, value)?;
        }
    }
    Ok(())
}

/// The section that has a key of this name, where just one does.
fn home(key: &str) -> Option<String> {
    let all = defaults();
    let mut sections: Vec<(String, &Table)> = all
        .iter()
        .filter_map(|(name, value)| Some((name.clone(), value.as_table()?)))
        .collect();
    let mut found = Vec::new();
    while let Some((name, keys)) = sections.pop() {
        for (inner, value) in keys {
            match value.as_table() {
                Some(table) => sections.push((format!("{name}.{inner}"), table)),
                None if inner == key => found.push(name.clone()),
                None => {}
            }
        }
    }
    found.pop().filter(|_| found.is_empty())
}

fn unknown<'a>(
    what: &str,
    name: &str,
    known: impl Iterator<Item = &'a String>,
    elsewhere: Option<String>,
) -> Error {
    let nearest = known
        .map(|k| (k, strsim::jaro_winkler(k, name)))
        .max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(a.0)));
    let other = elsewhere.map_or(String::new(), |home| format!(", or `{name}` in [{home}]"));
    let hint = nearest.map_or(String::new(), |(k, _)| {
        format!("; did you mean `{k}`{other}?")
    });
    Error::new(
        Code::ConfigUnknownKey,
        format!("unknown {what}: `{name}`{hint}"),
    )
}

/// The user's value in the default's type: whole numbers pass where the default
/// is a fraction; `entity_labels` may be a word or a list.
fn coerce(section: &str, key: &str, default: &Value, value: &Value) -> Result<Value> {
    match (default, value) {
        (Value::Float(_), Value::Integer(i)) =>
        {
            #[allow(clippy::cast_precision_loss)]
            Ok(Value::Float(*i as f64))
        }
        (Value::Array(_), Value::Array(items)) => Ok(Value::Array(
            items
                .iter()
                .map(|v| match v {
                    #[allow(clippy::cast_precision_loss)]
                    Value::Integer(i) => Value::Float(*i as f64),
                    other => other.clone(),
                })
                .collect(),
        )),
        (Value::String(_), Value::Array(_)) if key == "entity_labels" => Ok(value.clone()),
        _ if default.same_type(value) => Ok(value.clone()),
        _ => Err(Error::new(
            Code::ConfigType,
            format!(
                "[{section}] {key} must be a {}, not a {}",
                kind(default),
                kind(value)
            ),
        )),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "text in quotes",
        Value::Integer(_) => "whole number",
        Value::Float(_) => "number",
        Value::Boolean(_) => "true or false",
        Value::Array(_) => "list",
        Value::Table(_) => "section",
        Value::Datetime(_) => "date",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(user: &str) -> Code {
        load("default", user).expect_err(user).code
    }

    #[test]
    fn presets_load_and_differ() {
        let default = load("default", "").unwrap();
        let paper = load("paper", "").unwrap();
        assert_eq!(default.capacity.protect_last, 1);
        assert_eq!(paper.capacity.protect_last, 0);
        assert_eq!(paper.retrieval.raw_prefetch_k, 16);
        assert_eq!(default.scoring_weights, paper.scoring_weights);
        assert_eq!(load("fancy", "").unwrap_err().code, Code::ConfigPreset);
    }

    #[test]
    fn each_swapped_key_lands_on_its_own_weight() {
        let c = load("default", "[scoring_weights]\nbeta_entities = 9").unwrap();
        assert!((c.scoring_weights.beta_entities - 9.0).abs() < 1e-12);
        assert!((c.scoring_weights.gamma_sentiment - 0.2).abs() < 1e-12);
    }

    #[test]
    fn a_section_in_a_section_keeps_what_is_not_named() {
        let c = load(
            "default",
            "[policy]\ngate = \"rpe\"\n[policy.rpe]\nbeta = 0.1",
        )
        .unwrap();
        assert_eq!(c.policy.gate, "rpe");
        assert!((c.policy.rpe.beta - 0.1).abs() < 1e-12);
        assert!((c.policy.rpe.theta_high - 0.7).abs() < 1e-12);
        let e = load("default", "[policy.rpe]\nbta = 0.1").unwrap_err();
        assert!(e.message.contains("[policy.rpe]") && e.message.contains("`beta`"));
        assert_eq!(code("[policy]\nrpe = 3"), Code::ConfigType);
    }

    #[test]
    fn unknown_names_suggest_the_nearest() {
        let e = load("default", "[capacity]\ntoken_buget = 5").unwrap_err();
        assert_eq!(e.code, Code::ConfigUnknownKey);
        assert!(e.message.contains("`token_budget`"), "{}", e.message);
        let e = load("default", "[capcity]\nx = 5").unwrap_err();
        assert!(e.message.contains("`capacity`"), "{}", e.message);
    }

    #[test]
    fn a_key_in_the_wrong_place_is_told_its_section() {
        for (text, said) in [
            (
                "token_budget = 5",
                "`token_budget` stands in no section; write it under [capacity]",
            ),
            ("tau = 0.1", "[policy.rpe]"),
            (
                "[capacity]\nfinal_recall_limit = 5",
                ", or `final_recall_limit` in [retrieval]?",
            ),
            ("[policy.rpe]\ngate = \"rpe\"", "`gate` in [policy]?"),
            ("[capacity]\nbudget = 5", ", or `budget` in [deliberation]?"),
            ("enabeld = true", "did you mean"),
        ] {
            let e = load("default", text).unwrap_err();
            assert_eq!(e.code, Code::ConfigUnknownKey);
            assert!(e.message.contains(said), "{}", e.message);
        }
    }

    #[test]
    fn wrong_types_and_syntax_are_told_apart() {
        assert_eq!(
            code("[capacity]\ntoken_budget = \"many\""),
            Code::ConfigType
        );
        assert_eq!(code("capacity = 3"), Code::ConfigType);
        assert_eq!(code("[capacity"), Code::ConfigSyntax);
    }

    #[test]
    fn ranges_are_checked() {
        for bad in [
            "[memory_tiers]\ncritical_max = 0.8",
            "[memory_tiers]\nunstable_max = 0.9",
            "[temporal_decay]\nlambda_base = -0.1",
            "[temporal_decay]\ninertia_strength = 1.0",
            "[scoring_weights]\nentity_cap = 0",
            "[scoring_weights]\nalpha_density = inf",
            "[capacity]\ntoken_budget = 0",
            "[capacity]\nwindow_size = 0",
            "[capacity]\npruning_frequency_x = 0",
            "[capacity]\nwhen_only_healthy = \"panic\"",
            "[capacity]\ntoken_counter = \"words\"",
            "[ltm]\nstorage_type = \"cloud\"",
            "[ltm]\ndistance_threshold = 3",
            "[store]\nsynchronous = \"off\"",
            "[retrieval]\nanswerability_weights = [1.0]",
            "[retrieval]\nstale_policy = \"hide\"",
            "[retrieval]\nfusion = \"sum\"",
            "[retrieval]\naside_below = 1.5",
            "[policy]\ngate = \"on\"",
            "[policy.rpe]\nutility = \"model\"",
            "[policy.recurrence]\nwriter = \"me\"",
            "[policy.rpe]\nbeta = 1.5",
            "[policy.rpe]\nbeta = inf",
            "[policy.rpe]\ntheta_low = 0.8",
            "[policy.rpe]\nfallback_below = 2",
            "[policy.rpe]\nepsilon = 0",
            "[policy.rpe]\nwindow = 0",
            "[policy]\nconsolidation = \"on\"",
            "[policy.recurrence]\nthresholds = \"mine\"",
            "[policy.recurrence]\ntheta_sim = 1.5",
            "[policy.recurrence]\ntheta_count = 0",
            "[policy.recurrence]\nmax_episodes = 0",
            "[policy.recurrence]\nmax_sentences = 1",
            "[policy.recurrence]\nmax_episodes = 4\nmax_facts = 80",
            "[policy.recurrence]\nmmr_lambda = -0.1",
            "[policy.recurrence]\nshare = inf",
            "[policy]\ndeliberation = \"always\"",
            "[deliberation]\nleast_coverage = 1.5",
            "[deliberation]\nkeep_score = 11",
            "[deliberation]\nchunk_messages = 0",
            "[policy]\ndeliberation = \"quality\"\n[retrieval]\nfusion = \"rrf\"",
        ] {
            assert_eq!(code(bad), Code::ConfigRange, "{bad}");
        }
    }
}
