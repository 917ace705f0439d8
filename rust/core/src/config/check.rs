//! Ranges, and settings that only make sense together.

use super::{Config, MADE_AT_ONCE};
use crate::error::{Code, Error, Result};
use crate::text;

/// No number with a point is further from 0: sums and products of them stay finite.
const MOST: f64 = 1e6;
/// Weights that others are divided by sum to this at least.
const LEAST_SUM: f64 = 1e-6;

fn refuse<T>(message: String) -> Result<T> {
    Err(Error::new(Code::ConfigRange, message))
}

/// Checks every range; the first violation is named with the values allowed.
pub fn ranges(c: &Config) -> Result<()> {
    finite(c)?;
    scoring_and_decay(c)?;
    capacity(c)?;
    recall(c)?;
    gate(c)?;
    recurrence(c)?;
    deliberation(c)
}

/// TOML knows `inf`, `nan` and numbers whose products are; no setting does.
fn finite(c: &Config) -> Result<()> {
    let json = serde_json::to_value(c).map_err(|e| {
        Error::new(
            Code::ConfigType,
            format!("the configuration is unusable: {e}"),
        )
    })?;
    // serde_json writes a number that is not finite as null, and nothing else is null.
    for (section, keys) in json.as_object().into_iter().flatten() {
        finite_section(section, keys)?;
    }
    Ok(())
}

fn finite_section(section: &str, keys: &serde_json::Value) -> Result<()> {
    for (key, value) in keys.as_object().into_iter().flatten() {
        for number in value.as_array().map_or(std::slice::from_ref(value), |a| a) {
            if number.is_null() {
                return refuse(format!("[{section}] {key} must be a finite number"));
            }
            let real = number.as_f64().filter(|_| number.is_f64());
            if let Some(x) = real.filter(|x| x.abs() > MOST) {
                return refuse(format!(
                    "[{section}] {key} must lie in [-{MOST}, {MOST}], not {x:e}"
                ));
            }
        }
        finite_section(&format!("{section}.{key}"), value)?;
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
    for (key, value) in [
        ("aside_below", r.aside_below),
        ("aside_margin", r.aside_margin),
    ] {
        if !(-1.0..=1.0).contains(&value) {
            return refuse(format!(
                "[retrieval] {key} must lie in [-1, 1], not {value}"
            ));
        }
    }
    one_of(
        "retrieval",
        "stale_policy",
        &r.stale_policy,
        &["drop", "demote"],
    )?;
    if r.ann_segment < 1 || r.ann_ef < 1 || r.ann_hits < 1 {
        return refuse("[retrieval] ann_segment, ann_ef and ann_hits must be at least 1".into());
    }
    one_of("retrieval", "fusion", &r.fusion, &["ranking", "rrf"])?;
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
    if r.symbolic_weights.iter().sum::<f64>() < LEAST_SUM {
        return refuse(format!(
            "[retrieval] symbolic_weights must sum to {LEAST_SUM} or more"
        ));
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

fn gate(c: &Config) -> Result<()> {
    one_of("policy", "gate", &c.policy.gate, &["off", "rpe"])?;
    let g = &c.policy.rpe;
    one_of("policy.rpe", "utility", &g.utility, &["rules", "llm"])?;
    for (key, value) in [
        ("beta", g.beta),
        ("theta_low", g.theta_low),
        ("theta_high", g.theta_high),
        ("tau", g.tau),
        ("conflict_surprise", g.conflict_surprise),
    ] {
        if !(0.0..=1.0).contains(&value) {
            return refuse(format!(
                "[policy.rpe] {key} must lie in [0, 1], not {value}"
            ));
        }
    }
    for (key, value) in [
        ("thread_below", g.thread_below),
        ("link_similarity", g.link_similarity),
        ("fallback_below", g.fallback_below),
        ("fallback_similarity", g.fallback_similarity),
    ] {
        if !(-1.0..=1.0).contains(&value) {
            return refuse(format!(
                "[policy.rpe] {key} must lie in [-1, 1], not {value}"
            ));
        }
    }
    if g.theta_low > g.theta_high {
        return refuse("[policy.rpe] theta_low must be at most theta_high".into());
    }
    if g.epsilon <= 0.0 || g.window < 1 || g.least < 1 {
        return refuse(
            "[policy.rpe] epsilon must be more than 0, window and least at least 1".into(),
        );
    }
    Ok(())
}

fn recurrence(c: &Config) -> Result<()> {
    one_of(
        "policy",
        "consolidation",
        &c.policy.consolidation,
        &["off", "recurrence"],
    )?;
    let r = &c.policy.recurrence;
    one_of(
        "policy.recurrence",
        "writer",
        &r.writer,
        &["extractive", "llm"],
    )?;
    one_of(
        "policy.recurrence",
        "thresholds",
        &r.thresholds,
        &["calibrated", "paper"],
    )?;
    for (key, value) in [
        ("theta_sim", r.theta_sim),
        ("paper_theta_sim", r.paper_theta_sim),
        ("mmr_lambda", r.mmr_lambda),
        ("fact_covered", r.fact_covered),
        ("fact_known", r.fact_known),
        ("share", r.share),
    ] {
        if !(0.0..=1.0).contains(&value) {
            return refuse(format!(
                "[policy.recurrence] {key} must lie in [0, 1], not {value}"
            ));
        }
    }
    for (key, value, least) in [
        ("theta_count", r.theta_count, 1),
        ("paper_theta_count", r.paper_theta_count, 1),
        ("max_episodes", r.max_episodes, 1),
        ("max_sentences", r.max_sentences, 2),
    ] {
        if value < least {
            return refuse(format!(
                "[policy.recurrence] {key} must be at least {least}, not {value}"
            ));
        }
    }
    if r.max_episodes > 100 || r.max_facts > 80 {
        return refuse(
            "[policy.recurrence] max_episodes must be at most 100, max_facts at most 80".into(),
        );
    }
    let facts = r.max_episodes * r.max_facts;
    if facts > MADE_AT_ONCE {
        return refuse(format!(
            "[policy.recurrence] max_episodes times max_facts must be at most {MADE_AT_ONCE}, not {facts}"
        ));
    }
    Ok(())
}

fn deliberation(c: &Config) -> Result<()> {
    let d = &c.deliberation;
    if c.policy.deliberation != "off" && c.retrieval.fusion == "rrf" {
        return refuse(
            "[retrieval] fusion = \"rrf\" ranks by two channels alone and cannot take in what [policy] deliberation finds: set one of them back to \"ranking\" or \"off\"".into(),
        );
    }
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
