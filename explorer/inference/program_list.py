"""The programs of the app, each by its name: texts of the grammar of `token_programs`."""

_LIST = """
self | previous(1) | previous(2) | previous(3) | next(1) | next(2) | decay(1) | decay(2) | decay(5)
decay(10) | decay(20) | within(4) | this word: same word | previous word | matching bracket
first: key is first | last: key is last | uniform: any
decay(2), not self: decay(2) and not self
uniform or sink(20): any or sink(20) | uniform or sink(60): any or sink(60)
decay(5) or sink(5) | decay(20) or sink(20)
same token, last: nearest same token and before query
same token, all: same token or self
token after the last same token: nearest after same token and before query
token after the last same token, else uniform: nearest after same token and before query else any
token after any same token: after same token and before query
token after any same token, else uniform: after same token and before query else any
token after any same token or sink(5): (after same token and before query) or sink(5)
last punctuation: nearest key is punctuation and not after query
last end of sentence: nearest key is end of sentence and not after query
last newline: nearest key is newline and not after query
start of the word: nearest key is start of word and not after query
start of the sentence: nearest key is start of sentence and not after query
starts of recent words or sink(5): (key is start of word and decay(10)) or sink(5)
this sentence: same sentence | this sentence or sink(20): same sentence or sink(20)
content words: key is content | last content word: nearest key is content and before query
recent content words: key is content and decay(5) | function words: key is function
last function word: nearest key is function and before query
capitals: key is capital | last capital: nearest key is capital and before query
numbers: key is number | last open bracket: nearest key is opening and before query
punctuation: key is punctuation | special tokens: key is special | repeated tokens: key is repeated
"""
_PAIRS = [one.partition(": ") for one in _LIST.strip().replace("\n", " | ").split(" | ")]
PROGRAMS = {name: text or name for name, _, text in _PAIRS}
NAMES = {
    "previous(1)": "previous-token head",
    "same token": "duplicate-token head",
    "token after": "induction head",
}
"""What a head is called whose strongest program begins so. Other programs give it no name.

Source: In-context Learning and Induction Heads (Olsson et al. 2022); Interpretability in the Wild
(Wang et al. 2022), section 3.
"""
