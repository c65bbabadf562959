//! Arguments of `laya [text…]`, `laya predict` and `laya route`: those of 0.4.15, and `--checkpoint`.

use std::path::PathBuf;

use clap::Args;

// No doc comment: clap would show it in place of the word's description.
#[derive(Debug, Clone, Args)]
pub(super) struct Query {
    /// The text; words are joined by spaces. Without it, one request per line is asked for
    pub(super) text: Vec<String>,
    /// Answer questions instead of only routing
    #[arg(long)]
    pub(super) predict: bool,
    /// Checkpoint by name or alias, or `auto`
    #[arg(long, value_name = "NAME")]
    pub(super) model: Option<String>,
    /// Folder of a checkpoint that answers, whatever the language
    #[arg(long, value_name = "DIR", conflicts_with_all = ["model", "task"])]
    pub(super) checkpoint: Option<PathBuf>,
    /// Language of the text, such as `en` or `de`
    #[arg(long, value_name = "CODE")]
    pub(super) lang: Option<String>,
    /// Probable language of the text
    #[arg(long, value_name = "CODE")]
    pub(super) lang_guess: Option<String>,
    /// Task by name
    #[arg(long, value_name = "NAME")]
    pub(super) task: Option<String>,
    /// Ready-made questions; this build has `router`. Answers, as with --predict
    #[arg(long, value_name = "NAME")]
    pub(super) preset: Option<String>,
    /// File of questions: a map, or {"questions": …, "state_key": …}. Answers, as with --predict
    #[arg(long, value_name = "FILE", conflicts_with = "preset")]
    pub(super) questions: Option<PathBuf>,
    /// Longest row, in tokens
    #[arg(long, value_name = "N")]
    pub(super) max_len: Option<usize>,
    /// Most tokens of question and options
    #[arg(long, value_name = "N")]
    pub(super) head_max_len: Option<usize>,
    /// Mark answers below this confidence, 0 to 1
    #[arg(long, value_name = "P")]
    pub(super) min_confidence: Option<f64>,
    /// Device: cpu
    #[arg(long, value_name = "DEVICE")]
    pub(super) device: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
    /// Say why the language was detected (routing only)
    #[arg(long)]
    pub(super) explain: bool,
    /// File with one request per line, or `-` for stdin
    #[arg(long, value_name = "FILE")]
    pub(super) batch: Option<PathBuf>,
    /// Has no effect on answers: passes are filled as rows come
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) batch_size: Option<u32>,
    /// Has no effect on answers: passes are filled as rows come
    #[arg(long)]
    pub(super) sort_by_length: bool,
}
