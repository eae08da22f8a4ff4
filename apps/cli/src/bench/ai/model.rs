//! The models of MLPerf Storage with checkpoints, and the files of a checkpoint.
//!
//! Layer 0 is the embedding, layers 1 to n are those of the transformer, n+1 is the head, and n+2
//! the last weights. Weights have 2 bytes, values of the optimizer 4. Source: DLIO's
//! `base_checkpointing.py` and the configuration files of mlcommons/storage.

use clap::ValueEnum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Bytes of a weight (fp16).
const WEIGHT: u64 = 2;
/// Bytes of a value of the optimizer (fp32).
const OPTIMIZER: u64 = 4;
/// Values of the optimizer for each parameter.
const OPTIMIZER_VALUES: u64 = 3;
/// Words in the vocabulary of all models.
const VOCABULARY: u64 = 128_256;
/// Scaled dimensions are multiples of this, so that all heads have one length.
const GRAIN: u64 = 256;

/// A model with a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize, JsonSchema)]
pub(crate) enum ModelName {
    #[value(name = "llama3-8b")]
    #[serde(rename = "llama3-8b")]
    Llama8b,
    #[value(name = "llama3-70b")]
    #[serde(rename = "llama3-70b")]
    Llama70b,
    #[value(name = "llama3-405b")]
    #[serde(rename = "llama3-405b")]
    Llama405b,
    #[value(name = "llama3-1t")]
    #[serde(rename = "llama3-1t")]
    Llama1t,
}

impl ModelName {
    /// The name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Llama8b => "llama3-8b",
            Self::Llama70b => "llama3-70b",
            Self::Llama405b => "llama3-405b",
            Self::Llama1t => "llama3-1t",
        }
    }
}

/// The dimensions of a transformer, and its division among ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Model {
    pub(crate) layers: u64,
    pub(crate) hidden: u64,
    pub(crate) ffn: u64,
    pub(crate) heads: u64,
    pub(crate) kv_heads: u64,
    pub(crate) vocabulary: u64,
    /// Ranks that share the weights of a layer.
    pub(crate) tensor: u64,
    /// Groups of layers.
    pub(crate) pipeline: u64,
    /// Copies of the model. Each has other samples.
    pub(crate) data: u64,
    /// What the copies divide among them: 1 the optimizer, 3 the weights as well (ZeRO).
    pub(crate) zero: u8,
}

/// A file of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CheckpointFile {
    pub(crate) name: String,
    pub(crate) bytes: u64,
}

impl Model {
    /// The model with its full dimensions.
    pub(crate) fn of(name: ModelName) -> Self {
        let (dimensions, heads, parallel, zero) = match name {
            ModelName::Llama8b => ([32, 4096, 14_336], [32, 8], [1, 1, 8], 3),
            ModelName::Llama70b => ([80, 8192, 28_672], [128, 8], [8, 1, 8], 3),
            ModelName::Llama405b => ([126, 16_384, 53_248], [128, 8], [8, 32, 2], 1),
            ModelName::Llama1t => ([128, 25_872, 98_304], [192, 32], [8, 64, 2], 1),
        };
        let ([layers, hidden, ffn], [heads, kv_heads]) = (dimensions, heads);
        let [tensor, pipeline, data] = parallel;
        Self {
            layers,
            hidden,
            ffn,
            heads,
            kv_heads,
            vocabulary: VOCABULARY,
            tensor,
            pipeline,
            data,
            zero,
        }
    }

    /// The model with about `scale` times the parameters in its layers: all three dimensions and
    /// the vocabulary become smaller by the cube root.
    pub(crate) fn scaled(self, scale: f64) -> Self {
        if scale == 1.0 {
            return self;
        }
        let root = scale.cbrt();
        let scaled = |value: u64| (value as f64 * root).round() as u64;
        let grained = |value: u64| (scaled(value) / GRAIN * GRAIN).max(GRAIN);
        Self {
            layers: scaled(self.layers).max(self.pipeline),
            hidden: grained(self.hidden),
            ffn: grained(self.ffn),
            vocabulary: grained(self.vocabulary),
            ..self
        }
    }

    /// Ranks of a whole checkpoint.
    pub(crate) fn ranks(self) -> u64 {
        self.tensor * self.pipeline * self.data
    }

    /// Columns of the matrices K and V.
    fn kv(self) -> u64 {
        self.hidden / self.heads * self.kv_heads
    }

    /// Weights of a transformer layer, part by part.
    fn layer_parts(self) -> [u64; 6] {
        let hidden = self.hidden;
        [
            hidden,
            hidden * (hidden + 2 * self.kv()),
            hidden * hidden,
            hidden,
            hidden * 2 * self.ffn,
            hidden * self.ffn,
        ]
    }

    /// Parameters of the model.
    pub(crate) fn parameters(self) -> u64 {
        let layer: u64 = self.layer_parts().iter().sum();
        2 * self.vocabulary * self.hidden + layer * self.layers + self.hidden
    }

    /// Weights of a layer that one rank holds.
    fn layer_weights(self, layer: u64) -> u64 {
        let copies = match self.zero {
            3 => self.data,
            _ => 1,
        };
        let divided = |part: u64| part / self.tensor / copies;
        if layer == 0 || layer == self.layers + 1 {
            return divided(self.hidden * self.vocabulary);
        }
        if layer == self.layers + 2 {
            return self.hidden / copies;
        }
        // The two vectors are not divided by tensor parallelism.
        let [input, qkv, dense, norm, up, down] = self.layer_parts();
        input / copies + norm / copies + divided(qkv) + divided(dense) + divided(up) + divided(down)
    }

    /// The layers of the ranks with this number within the pipeline.
    fn layers_of(self, stage: u64) -> std::ops::RangeInclusive<u64> {
        let (each, rest) = (self.layers / self.pipeline, self.layers % self.pipeline);
        let before = stage * each + stage.min(rest);
        let own = each + u64::from(stage < rest);
        let first = match stage {
            0 => 0,
            _ => before + 1,
        };
        let last = match stage + 1 == self.pipeline {
            true => self.layers + 2,
            false => before + own,
        };
        first..=last
    }

    /// The files that a rank writes.
    pub(crate) fn files(self, rank: u64) -> Vec<CheckpointFile> {
        let shards = self.tensor * self.pipeline;
        let (copy, shard) = (rank / shards, rank % shards);
        let layers = self.layers_of(rank / self.tensor % self.pipeline);
        let weights = |layer| WEIGHT * self.layer_weights(layer);
        let mut files = Vec::new();
        let mut add = |name: String, bytes: u64| files.push(CheckpointFile { name, bytes });
        let part = format!("zero_pp_rank_{copy}_mp_rank_{shard}");
        match (self.zero, self.pipeline) {
            (3, _) => add(format!("{part}_model_states.pt"), layers.map(weights).sum()),
            _ if copy > 0 => {}
            (_, 1) => add(
                format!("model_{shard}_model_states.pt"),
                layers.map(weights).sum(),
            ),
            _ => layers.for_each(|layer| {
                let name = format!("layer_{layer}-model_{shard}_model_states.pt");
                add(name, weights(layer));
            }),
        }
        let parameters = self.parameters() / self.ranks();
        let values = OPTIMIZER_VALUES * (parameters + 5 * self.hidden);
        add(format!("{part}_optim_states.pt"), values * OPTIMIZER);
        files
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: f64 = (1_u64 << 30) as f64;

    /// GiB and files of a checkpoint of the first `ranks` ranks.
    fn size(model: Model, ranks: u64) -> (f64, usize) {
        let files: Vec<_> = (0..ranks).flat_map(|rank| model.files(rank)).collect();
        let bytes: u64 = files.iter().map(|file| file.bytes).sum();
        (bytes as f64 / GIB, files.len())
    }

    #[test]
    fn whole_checkpoints_have_the_sizes_of_the_rules() {
        for (name, ranks, gib, files, billions) in [
            (ModelName::Llama8b, 8, 104.7, 16, 8.03),
            (ModelName::Llama70b, 64, 911.2, 128, 69.9),
            (ModelName::Llama405b, 512, 5292.0, 1544, 405.9),
            (ModelName::Llama1t, 1024, 15_427.0, 2072, 1183.0),
        ] {
            let model = Model::of(name);
            assert_eq!(model.ranks(), ranks);
            let parameters = model.parameters() as f64 / 1e9;
            assert!((parameters / billions - 1.0).abs() < 0.001, "{parameters}");
            let (bytes, count) = size(model, ranks);
            assert!((bytes / gib - 1.0).abs() < 0.001, "{name:?}: {bytes} GiB");
            assert_eq!(count, files, "{name:?}");
        }
    }

    #[test]
    fn a_subset_of_ranks_writes_its_files_only() {
        let (gib, files) = size(Model::of(ModelName::Llama405b), 36);
        assert!(
            (gib - 429.8).abs() < 0.1 && files == 188,
            "{gib} GiB, {files} files"
        );
        for (name, expected) in [
            (ModelName::Llama70b, 113.9),
            (ModelName::Llama405b, 98.5),
            (ModelName::Llama1t, 143.7),
        ] {
            let (gib, _) = size(Model::of(name), 8);
            assert!((gib - expected).abs() < 0.1, "{name:?}: {gib} GiB");
        }
    }

    #[test]
    fn given_dimensions_have_the_files_of_dlio() {
        // Sizes of the files of DLIO, which have a few kB of torch.save around the values.
        let model = Model {
            layers: 2,
            hidden: 1024,
            ffn: 4096,
            ..Model::of(ModelName::Llama8b)
        };
        let sizes: Vec<u64> = model.files(1).iter().map(|file| file.bytes).collect();
        assert!(73_274_232 - sizes[0] < 8192, "{sizes:?}");
        assert!(439_686_295 - sizes[1] < 8192, "{sizes:?}");
    }

    #[test]
    fn a_scaled_model_has_about_that_share_of_the_bytes() {
        let whole = size(Model::of(ModelName::Llama8b), 8).0;
        for scale in [0.1, 0.01] {
            let scaled = size(Model::of(ModelName::Llama8b).scaled(scale), 8).0;
            assert!(
                (0.5..2.0).contains(&(scaled / whole / scale)),
                "{scaled} of {whole}"
            );
        }
        let tiny = Model::of(ModelName::Llama405b).scaled(1e-9);
        assert!(tiny.layers >= tiny.pipeline && size(tiny, 512).0 > 0.0);
    }
}
