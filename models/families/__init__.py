"""The published families that the core can open, by the `model_type` of their config.json."""

from models.families import (
    bart,
    bert,
    biogpt,
    blenderbot,
    bloom,
    distilbert,
    gemma,
    gpt2,
    gpt_bigcode,
    gpt_neo,
    gpt_neox,
    gptj,
    llama,
    marian,
    opt,
    pegasus,
    phi,
    phi3,
    roberta,
    stablelm,
    starcoder2,
    t5,
)
from models.families.family import Family

FAMILIES: dict[str, Family] = {
    kind: family
    for family in (
        gpt2.GPT2,
        llama.LLAMA,
        llama.MISTRAL,
        llama.QWEN2,
        llama.QWEN3,
        gemma.GEMMA,
        gemma.GEMMA2,
        phi3.PHI3,
        gpt_neox.GPT_NEOX,
        gptj.GPTJ,
        opt.OPT,
        bloom.BLOOM,
        starcoder2.STARCODER2,
        stablelm.STABLELM,
        phi.PHI,
        gpt_neo.GPT_NEO,
        gpt_bigcode.GPT_BIGCODE,
        biogpt.BIOGPT,
        bert.BERT,
        distilbert.DISTILBERT,
        roberta.ROBERTA,
        marian.MARIAN,
        bart.BART,
        bart.MBART,
        bart.PLBART,
        pegasus.PEGASUS,
        blenderbot.BLENDERBOT,
        t5.T5,
        t5.MT5,
    )
    for kind in family.types
}
