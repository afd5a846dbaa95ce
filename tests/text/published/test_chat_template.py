"""Chat templates: rendered and read as by the reference, and harmless whatever they are."""

from pathlib import Path
from typing import Any

import pytest
import transformers

from explorer.text import PublishedTokenizer, TextError, open_published, steps
from explorer.text.checked_text import LARGEST_TEMPLATE
from explorer.text.published.chat_template import LONGEST_PROMPT, LONGEST_REASON
from tests import tiny
from tests.text.published.hostile_tokenizers import FOLLOWS_THE_FILE, words
from tests.text.published.test_hostile import one_sentence

ASKS = [{"role": "user", "content": "the cat\nsat  on <b>"}]
TOLD = [{"role": "system", "content": "be short"}, *ASKS]
LLAMA = (
    "{{ bos_token }}{% if messages[0].role == 'system' %}{% set said = messages[0].content %}"
    "{% set messages = messages[1:] %}{% endif %}{% for message in messages %}"
    "{% if message.role == 'user' %}[INST] {% if said is defined and loop.first %}<<SYS>>\n"
    "{{ said }}\n<</SYS>>\n\n{% endif %}{{ message.content.strip() }} [/INST]"
    "{% else %}{{ ' ' ~ message.content|trim ~ ' ' ~ eos_token }}{% endif %}{% endfor %}"
)
ALL = """{%- set ns = namespace(count=0) -%}
{% if tools %}{{ tools|tojson }}{% endif %}
{% for message in messages %}
    {%- if message.role == 'system' %}{% continue %}{% endif %}
    {%- set ns.count = ns.count + 1 %}
    {{- '<|im_start|>' ~ message.role }} {{ message|tojson }}
    {%- if message.role == 'assistant' %}{% generation %}{{ message.content }}{% endgeneration %}
    {%- endif %}
    {{- '<|im_end|>' }}
{% endfor %}
{{ ns.count }} {{ missing }} {{ range(3)|list }}
"""
TEMPLATES = {"chatml": tiny.CHATML, "llama": LLAMA, "all": ALL}


@pytest.fixture(scope="module")
def chats(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with special tokens of a chat, one of which takes the blanks after it."""
    folder = tiny.chat_gpt2(tmp_path_factory.mktemp("chats") / "model")
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    strips = transformers.AddedToken("<|end|>", rstrip=True, special=True, normalized=False)
    theirs.add_special_tokens({"bos_token": "<|bos|>", "additional_special_tokens": [strips]})
    saved = folder.parent / "saved"
    theirs.save_pretrained(saved)
    return saved


@pytest.fixture(scope="module")
def ours(chats: Path) -> PublishedTokenizer:
    return open_published(chats, "gpt2")


@pytest.fixture(scope="module")
def theirs(chats: Path) -> Any:
    return transformers.AutoTokenizer.from_pretrained(chats)


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_prompt_is_the_reference_s(ours: PublishedTokenizer, theirs: Any, name: str) -> None:
    for messages in (ASKS, TOLD, [*TOLD, {"role": "assistant", "content": " the mat. "}, *ASKS]):
        for begins in (False, True):
            how: dict[str, Any] = {"add_generation_prompt": begins}
            text = ours.render(TEMPLATES[name], messages, **how)
            how |= {"chat_template": TEMPLATES[name], "tokenize": False}
            assert text == theirs.apply_chat_template(messages, **how)
            prompt = ours.reading_prompts()
            assert prompt.ids(text) == theirs(text, add_special_tokens=False)["input_ids"]


def test_special_tokens_are_marked_over_their_text(ours: PublishedTokenizer, theirs: Any) -> None:
    text = "<|im_start|>user\n  the cat<|end|> \n sat<|im_end|><|im_end|>"
    tokens = ours.reading_prompts().encode(text)
    assert [token.id for token in tokens] == theirs(text, add_special_tokens=False)["input_ids"]
    special = [text[token.start : token.end] for token in tokens if token.special]
    assert special == ["<|im_start|>", "<|end|> \n ", "<|im_end|>", "<|im_end|>"]
    assert "".join(text[token.start : token.end] for token in tokens) == text
    assert not any(token.special for token in ours.encode(text)), "a typed text has none"
    with pytest.raises(TextError, match="Steps are shown of plain text"):
        steps(ours.reading_prompts(), text)


def test_a_sentencepiece_model_reads_prompts(tmp_path: Path) -> None:
    tiny.reference_t5(tmp_path / "t5")
    tokenizer = open_published(tmp_path / "t5", "t5").reading_prompts()
    tokens = tokenizer.encode("the cat</s>the")
    assert [token.label for token in tokens if token.special] == ["</s>"]
    assert tokens[-1].id != tokenizer.eos_id, "none is added"


FORBIDDEN = "it asks for what a template may not use"
HARMFUL = {
    "{{ ''.__class__.__mro__ }}": FORBIDDEN,
    "{{ raise_exception.__globals__['os'] }}": FORBIDDEN,
    "{{ cycler.__init__.__globals__ }}": FORBIDDEN,
    "{{ '{0.__class__.__mro__}'.format(1) }}": FORBIDDEN,
    "{{ (messages|attr('__class__')).mro() }}": FORBIDDEN,
    "{{ messages.append(1) }}": FORBIDDEN,
    "{{ messages[0].update({'role': 'x'}) }}": FORBIDDEN,
    "{% for i in range(10**9) %}x{% endfor %}": "it repeats something too often",
    "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}": "too long",
    "{{ 'x' * 10**9 }}": "it needs more memory than it may use",
    "{{ 'x'.ljust(10**9) }}": "it needs more memory than it may use",
    "{% for i in [1] * 10**9 %}{% endfor %}": "it needs more memory than it may use",
    "{{ messages|tojson(indent=10**9) }}": "it needs more memory than it may use",
    "{{ 'x' * 10**6 }}": f"it makes more than {LONGEST_PROMPT:,} characters",
    "{% for i in range(99999) %}xx{% endfor %}": f"more than {LONGEST_PROMPT:,} characters",
    "{% macro a() %}{{ a() }}{% endmacro %}{{ a() }}": "it calls itself without end",
    "{{" + "(" * 5_000 + "1" + ")" * 5_000 + "}}": "it calls itself without end",
    "{{ nothing.at.all }}": "it needs what a prompt does not have: 'nothing' is undefined",
    "{{ messages[9].content }}": "it needs what a prompt does not have",
    "{{ raise_exception('Only\nuser\u202e roles.') }}": "refuses these messages: Only user<U+202E>",
    "{{ raise_exception('x' * 10**5) }}": "it refuses these messages: x",
    "{% if %}": "line 1 of it is no Jinja",
    "{% include '/etc/passwd' %}": "it ends in an error",
    "{% import 'os' as os %}": "it ends in an error",
    "{{ 1 / 0 }}": "it ends in an error: ZeroDivisionError",
    "{{ lipsum(10**6) }}": "'lipsum' is undefined",
    "{{ '\ud800' }}": "it makes half a character",
    "x" * (LARGEST_TEMPLATE + 1): f"at most {LARGEST_TEMPLATE:,} are read",
}


def test_a_harmful_template_is_refused(ours: PublishedTokenizer, subtests: pytest.Subtests) -> None:
    for template, why in HARMFUL.items():
        with subtests.test(template=template[:60]):
            with pytest.raises(TextError) as caught:
                ours.render(template, ASKS, add_generation_prompt=True)
            sentence = one_sentence(str(caught.value))
            assert sentence.startswith("The chat template of this model cannot be used: ")
            assert why in sentence
            assert len(sentence) < LONGEST_REASON + 150
            assert ours.render("{{ 1 }}", ASKS, add_generation_prompt=True) == "1"


def test_what_leads_nowhere_says_nothing(ours: PublishedTokenizer, tmp_path: Path) -> None:
    for template in ("{{ messages.__class__ }}", "{{ ''|attr('__class__') }}", "{{ missing }}"):
        assert ours.render(template, ASKS, add_generation_prompt=True) == ""
    (tmp_path / "tokenizer.json").write_text(words())
    (tmp_path / "tokenizer_config.json").write_text(FOLLOWS_THE_FILE)
    bare = open_published(tmp_path, "gpt2")
    said = bare.render("{{ bos_token }}a b", ASKS, add_generation_prompt=True)
    assert bare.reading_prompts().ids(said) == [1, 2], "it has no special token"
