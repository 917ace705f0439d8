//! The pure engine of ebbtide.
//!
//! It knows no Python, reads no clock, no environment and no random numbers: the
//! same facts in the same order give the same state, bit for bit. Layers, from
//! the bottom: `types`, `error` · `order`, `text`, `calendar`, `score::vector` ·
//! `config` · `score`, `lineage`, `index`, `render` · `policy` · `store`, `retrieve` · `active` ·
//! `engine`. `scripts/check_layers.py` holds them to it.

// Tests compare results that must be equal bit for bit.
#![cfg_attr(test, allow(clippy::float_cmp))]

pub mod active;
pub mod calendar;
pub mod config;
pub mod engine;
pub mod error;
pub mod index;
pub mod lineage;
pub mod order;
pub mod policy;
pub mod render;
pub mod retrieve;
pub mod score;
pub mod store;
pub mod text;
pub mod types;
