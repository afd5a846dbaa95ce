"""RoBERTa and those that are built like it: XLM-R and CamemBERT.

Sources: RoBERTa (Liu et al. 2019); Unsupervised Cross-lingual Representation Learning at
Scale (Conneau et al. 2020); CamemBERT (Martin et al. 2020).
"""

from models.config import TransformerConfig
from models.families.bert import bert_config, bert_names
from models.families.family import Family, Names
from models.families.published import Published


def roberta_config(published: Published) -> TransformerConfig:
    """BERT's, with positions that begin after the row of the padding token and skip padding."""
    vocab_size = 50265 if published.values.get("model_type") == "roberta" else 30522
    base = bert_config(published, vocab_size=vocab_size, pad=1, bos=0, eos=2)
    if base.pad_id is None:
        raise ValueError("pad_token_id must be a token of its own, since positions count the rest.")
    if base.head == "masked-language-model":
        published.require("hidden_act", "gelu")  # whatever it says, the head's own is gelu
    first = base.pad_id + 1
    if base.max_len <= first:
        raise ValueError(f"max_position_embeddings must be above {first}.")
    return base.replace(max_len=base.max_len - first, position_offset=first, count_padding=False)


def roberta_names(config: TransformerConfig) -> Names:
    body = {
        theirs: ours
        for theirs, ours in bert_names(config).items()
        if theirs.startswith(("embeddings.", "encoder."))
    }
    return body | {
        "lm_head.dense": "head.transform.proj",
        "lm_head.layer_norm": "head.transform.norm",
        "lm_head.decoder.weight": "head.weight",
        "lm_head.decoder.bias": "head.bias",
        "lm_head.bias": "head.bias",
        "classifier.dense": "head.hidden",
        "classifier.out_proj": "head.out",
    }


ROBERTA = Family(
    ("roberta", "xlm-roberta", "camembert"),
    roberta_config,
    roberta_names,
    prefix="roberta.",
    output="lm_head.decoder.weight",
)
