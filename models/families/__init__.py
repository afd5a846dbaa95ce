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
        gpt2.FAMILY,
        llama.LLAMA,
        llama.MISTRAL,
        llama.QWEN2,
        llama.QWEN3,
        gemma.GEMMA,
        gemma.GEMMA2,
        phi3.FAMILY,
        gpt_neox.FAMILY,
        gptj.FAMILY,
        opt.FAMILY,
        bloom.FAMILY,
        starcoder2.FAMILY,
        stablelm.FAMILY,
        phi.FAMILY,
        gpt_neo.FAMILY,
        gpt_bigcode.FAMILY,
        biogpt.FAMILY,
        bert.FAMILY,
        distilbert.FAMILY,
        roberta.FAMILY,
        marian.FAMILY,
        bart.BART,
        bart.MBART,
        bart.PLBART,
        pegasus.FAMILY,
        blenderbot.FAMILY,
        t5.T5,
        t5.MT5,
    )
    for kind in family.types
}
