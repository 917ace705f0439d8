//! Ranges, and settings that only make sense together.

use super::Config;
use crate::error::{Code, Error, Result};
use crate::text;

fn refuse<T>(message: String) -> Result<T> {
    Err(Error::new(Code::ConfigRange, message))
}

/// Checks every range; the first violation is named with the values allowed.
pub fn ranges(c: &Config) -> Result<()> {
    finite(c)?;
    scoring_and_decay(c)?;
    capacity(c)?;
    recall(c)?;
    deliberation(c)
}

/// TOML knows `inf` and `nan`; no setting does.
fn finite(c: &Config) -> Result<()> {
    let json = serde_json::to_value(c).map_err(|e| {
        Error::new(
            Code::ConfigType,
            format!("the configuration is unusable: {e}"),
        )
    })?;
    // serde_json writes a number that is not finite as null, and nothing else is null.
    for (section, keys) in json.as_object().into_iter().flatten() {
        for (key, value) in keys.as_object().into_iter().flatten() {
            let list = value
                .as_array()
                .is_some_and(|a| a.iter().any(serde_json::Value::is_null));
            if value.is_null() || list {
                return refuse(format!("[{section}] {key} must be a finite number"));
            }
        }
    }
    Ok(())
}

fn scoring_and_decay(c: &Config) -> Result<()> {
    let (d, t, s) = (&c.temporal_decay, &c.memory_tiers, &c.scoring_weights);
    if s.entity_cap < 1 {
        return refuse("[scoring_weights] entity_cap must be at least 1".into());
    }
    for (key, value) in [
        ("social_threshold", s.social_threshold),
        ("min_social_score", s.min_social_score),
    ] {
        if !(0.0..=1.0).contains(&value) {
            return refuse(format!(
                "[scoring_weights] {key} must lie in [0, 1], not {value}"
            ));
        }
    }
    if d.lambda_base < 0.0 {
        return refuse(format!(
            "[temporal_decay] lambda_base must be 0 or more, not {}",
            d.lambda_base
        ));
    }
    if !(0.0..1.0).contains(&d.inertia_strength) {
        return refuse(format!(
            "[temporal_decay] inertia_strength must lie in [0, 1), not {}",
            d.inertia_strength
        ));
    }
    if !(0.0..=1.0).contains(&d.hard_kill_threshold) {
        return refuse("[temporal_decay] hard_kill_threshold must lie in [0, 1]".into());
    }
    if !(t.critical_max < t.unstable_max && t.unstable_max <= t.healthy_min) {
        return refuse(format!(
            "[memory_tiers] must satisfy critical_max < unstable_max <= healthy_min, not {} / {} / {}",
            t.critical_max, t.unstable_max, t.healthy_min
        ));
    }
    Ok(())
}

fn capacity(c: &Config) -> Result<()> {
    let a = &c.capacity;
    for (key, value) in [
        ("token_budget", a.token_budget),
        ("pruning_frequency_x", a.pruning_frequency_x),
        ("window_size", u64::from(a.window_size)),
    ] {
        if value < 1 {
            return refuse(format!("[capacity] {key} must be at least 1"));
        }
    }
    one_of(
        "capacity",
        "when_only_healthy",
        &a.when_only_healthy,
        &["keep", "evict_lowest"],
    )?;
    if text::tokenizer(&a.token_counter).is_none() {
        return one_of(
            "capacity",
            "token_counter",
            "",
            &["cl100k_base", "o200k_base"],
        );
    }
    one_of(
        "store",
        "synchronous",
        &c.store.synchronous,
        &["normal", "full"],
    )?;
    if c.nlp.vector_dim < 1 || c.nlp.threads < 1 {
        return refuse("[nlp] vector_dim and threads must be at least 1".into());
    }
    if let super::EntityLabels::Word(word) = &c.nlp.entity_labels {
        one_of("nlp", "entity_labels", word, &["all"])?;
    }
    if c.limits.max_turn_chars < 1 || c.limits.max_query_chars < 1 {
        return refuse("[limits] values must be at least 1".into());
    }
    Ok(())
}

fn recall(c: &Config) -> Result<()> {
    let r = &c.retrieval;
    one_of(
        "ltm",
        "storage_type",
        &c.ltm.storage_type,
        &["sqlite", "chroma", "file", "null"],
    )?;
    if !(0.0..=2.0).contains(&c.ltm.distance_threshold) {
        return refuse("[ltm] distance_threshold must lie in [0, 2]".into());
    }
    one_of(
        "retrieval",
        "stale_policy",
        &r.stale_policy,
        &["drop", "demote"],
    )?;
    for (key, list, length) in [
        ("answerability_weights", &r.answerability_weights, 10),
        ("answerability_penalties", &r.answerability_penalties, 3),
        ("symbolic_weights", &r.symbolic_weights, 5),
    ] {
        if list.len() != length {
            return refuse(format!(
                "[retrieval] {key} must have {length} numbers, not {}",
                list.len()
            ));
        }
    }
    if r.symbolic_weights.iter().sum::<f64>() <= 0.0 {
        return refuse("[retrieval] symbolic_weights must sum to more than 0".into());
    }
    if !(0.0..=1.0).contains(&r.adaptive_floor) {
        return refuse("[retrieval] adaptive_floor must lie in [0, 1]".into());
    }
    if r.final_recall_limit < 1 || c.render.max_tokens < 1 {
        return refuse(
            "[retrieval] final_recall_limit and [render] max_tokens must be at least 1".into(),
        );
    }
    Ok(())
}

fn deliberation(c: &Config) -> Result<()> {
    let d = &c.deliberation;
    one_of(
        "policy",
        "deliberation",
        &c.policy.deliberation,
        &["off", "quality", "majority", "consensus"],
    )?;
    for (key, value) in [
        ("least_answerability", d.least_answerability),
        ("least_specificity", d.least_specificity),
        ("least_coverage", d.least_coverage),
        ("duplicate_cosine", d.duplicate_cosine),
        ("filter_lambda", d.filter_lambda),
        ("same_fact_cosine", d.same_fact_cosine),
    ] {
        if !(0.0..=1.0).contains(&value) {
            return refuse(format!(
                "[deliberation] {key} must lie in [0, 1], not {value}"
            ));
        }
    }
    for (key, value) in [
        ("emit_score", d.emit_score),
        ("keep_score", d.keep_score),
        ("fallback_score", d.fallback_score),
        ("weight", d.weight),
    ] {
        if !(0.0..=10.0).contains(&value) {
            return refuse(format!(
                "[deliberation] {key} must lie in [0, 10], not {value}"
            ));
        }
    }
    let counts = [
        d.gate_evidence,
        d.list_sources,
        d.vote_depth,
        d.chunk_messages as usize,
        d.budget,
        d.fallback_limit,
    ];
    if counts.contains(&0) {
        return refuse(
            "[deliberation] gate_evidence, list_sources, vote_depth, chunk_messages, budget and fallback_limit must be at least 1".into(),
        );
    }
    Ok(())
}

fn one_of(section: &str, key: &str, value: &str, allowed: &[&str]) -> Result<()> {
    if allowed.contains(&value) {
        return Ok(());
    }
    refuse(format!(
        "[{section}] {key} must be one of {allowed:?}, not {value:?}"
    ))
}
