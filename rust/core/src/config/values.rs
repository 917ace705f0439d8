//! The settings as typed values. What each means is said once, in `defaults.toml`.
#![allow(missing_docs)]

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Config {
    pub nlp: Nlp,
    pub scoring_weights: ScoringWeights,
    pub temporal_decay: TemporalDecay,
    pub memory_tiers: MemoryTiers,
    pub capacity: Capacity,
    pub pruning_priority: PruningPriority,
    pub ltm: Ltm,
    pub retrieval: Retrieval,
    pub ranking: Ranking,
    pub policy: Policy,
    pub deliberation: Deliberation,
    pub render: Render,
    pub store: Store,
    pub limits: Limits,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Nlp {
    pub spacy_model: String,
    pub model_name: String,
    pub vector_dim: u32,
    pub entity_labels: EntityLabels,
    pub speaker_prefix: bool,
    pub threads: u32,
    pub analysis_cache: String,
}

/// `"all"`, or the labels that count.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum EntityLabels {
    Word(String),
    List(Vec<String>),
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScoringWeights {
    pub alpha_density: f64,
    pub beta_entities: f64,
    pub gamma_sentiment: f64,
    pub delta_technical: f64,
    pub sigmoid_midpoint: f64,
    pub entity_cap: u32,
    pub social_threshold: f64,
    pub min_social_score: f64,
    pub lambda_operational: f64,
    pub eta_constraint: f64,
    pub eta_preference: f64,
    pub eta_current_state: f64,
    pub eta_correction: f64,
    pub eta_replacement: f64,
    pub eta_past_state: f64,
    pub user_correction_boost: f64,
    pub preference_update_boost: f64,
    pub constraint_boost: f64,
    pub corrected_by_user_penalty: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TemporalDecay {
    pub lambda_base: f64,
    pub inertia_strength: f64,
    pub hard_kill_threshold: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemoryTiers {
    pub critical_max: f64,
    pub unstable_max: f64,
    pub healthy_min: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Capacity {
    pub token_budget: u64,
    pub pruning_frequency_x: u64,
    pub window_size: u32,
    pub protect_last: u32,
    pub when_only_healthy: String,
    pub token_counter: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PruningPriority {
    pub rho_constraint: f64,
    pub rho_preference: f64,
    pub rho_current_state: f64,
    pub rho_correction: f64,
    pub rho_replacement: f64,
    pub superseded_past_penalty: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ltm {
    pub storage_type: String,
    pub storage_path: String,
    pub chroma_path: String,
    pub collection_name: String,
    pub recall_limit: u32,
    pub distance_threshold: f64,
    pub enabled: bool,
    pub cards_enabled: bool,
    pub cards_path: String,
    pub cards_collection_name: String,
}

/// What becomes of an archived turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Archive {
    /// Kept in the store and recalled.
    Recalled,
    /// Written to a JSON Lines file, kept, never recalled.
    WriteOnly,
    /// Erased.
    Discarded,
}

impl Ltm {
    pub fn archive(&self) -> Archive {
        match self.storage_type.as_str() {
            _ if !self.enabled => Archive::Discarded,
            "null" => Archive::Discarded,
            "file" => Archive::WriteOnly,
            _ => Archive::Recalled,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Retrieval {
    pub card_prefetch_k: usize,
    pub raw_prefetch_k: usize,
    pub symbolic_lookup_k: usize,
    pub final_recall_limit: usize,
    pub max_support_turns_per_card: usize,
    pub include_superseded_when_historical: bool,
    pub include_neighbor_turns: bool,
    pub enable_raw_semantic: bool,
    pub enable_raw_lexical: bool,
    pub enable_card_semantic: bool,
    pub enable_card_symbolic: bool,
    pub enable_bm25: bool,
    pub ann_min_vectors: usize,
    pub ann_segment: u64,
    pub ann_ef: usize,
    pub ann_hits: usize,
    pub late_interaction: bool,
    pub late_interaction_k: usize,
    pub late_interaction_window: u64,
    /// Cosine to the nearest turn around below which a turn is stepped over in windows.
    pub aside_below: f64,
    /// How far below the upper quartile of such cosines it must be besides.
    pub aside_margin: f64,
    pub stale_policy: String,
    pub answerability_weights: Vec<f64>,
    pub answerability_penalties: Vec<f64>,
    pub symbolic_weights: Vec<f64>,
    pub adaptive_truncation: bool,
    pub adaptive_floor: f64,
    pub fusion: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ranking {
    pub late_own: f64,
    pub late_window: f64,
    pub late_previous: f64,
    pub answerability: f64,
    pub dense: f64,
    pub bm25: f64,
    pub bm25_neighbours: f64,
    pub speaker: f64,
    pub answer: f64,
    pub question: f64,
    pub remark: f64,
    pub time: f64,
    pub entities: f64,
    pub reply: f64,
    pub date_range: f64,
    pub current: f64,
    pub stale: f64,
    pub update: f64,
    pub outdated: f64,
    pub former: f64,
    pub original: f64,
    pub inherited: f64,
    pub role: f64,
    pub asked_role: f64,
    pub polarity: f64,
    pub hedged: f64,
    pub length: f64,
    pub owner: f64,
    pub anchor: f64,
    pub system_or_tool: f64,
    pub social: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Policy {
    pub gate: String,
    pub rpe: Rpe,
    pub consolidation: String,
    pub recurrence: RecurrencePolicy,
    pub deliberation: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Rpe {
    pub utility: String,
    pub beta: f64,
    pub theta_low: f64,
    pub theta_high: f64,
    pub tau: f64,
    pub warmup: u64,
    pub window: usize,
    pub epsilon: f64,
    pub least: usize,
    pub conflict_surprise: f64,
    pub thread_notes: usize,
    pub thread_below: f64,
    pub thread_margin: f64,
    pub aside_words: usize,
    pub brief_words: usize,
    pub status_words: usize,
    pub phatic_terms: usize,
    pub links: usize,
    pub link_similarity: f64,
    pub shadow_size: usize,
    pub fallback_below: f64,
    pub fallback_similarity: f64,
    pub fallback_limit: usize,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RecurrencePolicy {
    pub writer: String,
    pub thresholds: String,
    pub theta_sim: f64,
    pub theta_count: usize,
    pub paper_theta_sim: f64,
    pub paper_theta_count: usize,
    pub neighbours: usize,
    pub max_episodes: usize,
    pub max_sentences: usize,
    pub mmr_lambda: f64,
    pub max_facts: usize,
    pub fact_neighbours: usize,
    pub fact_covered: f64,
    pub fact_known: f64,
    pub k_epi: usize,
    pub k_sem: usize,
    pub share: f64,
    pub share_from: u32,
}

impl RecurrencePolicy {
    /// The similarity threshold in force.
    pub fn similarity(&self) -> f64 {
        if self.thresholds == "paper" {
            self.paper_theta_sim
        } else {
            self.theta_sim
        }
    }

    /// The recurrence threshold in force.
    pub fn count(&self) -> usize {
        if self.thresholds == "paper" {
            self.paper_theta_count
        } else {
            self.theta_count
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Deliberation {
    pub gate_evidence: usize,
    pub least_answerability: f64,
    pub least_specificity: f64,
    pub least_coverage: f64,
    pub list_sources: usize,
    pub vote_depth: usize,
    pub chunk_messages: u32,
    pub context_messages: usize,
    pub emit_score: f64,
    pub keep_score: f64,
    pub filter_above: usize,
    pub budget: usize,
    pub fallback_score: f64,
    pub fallback_limit: usize,
    pub duplicate_cosine: f64,
    pub filter_lambda: f64,
    pub weight: f64,
    pub same_fact_cosine: f64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Render {
    pub resolve_dates: bool,
    pub end_marker: bool,
    pub max_tokens: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Store {
    pub synchronous: String,
    pub token_vectors: bool,
    pub recall_cache_mb: u32,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    pub max_turn_chars: usize,
    pub max_query_chars: usize,
}
