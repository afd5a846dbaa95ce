"""Makes the three kinds of tokenizer.

`reads` says which special tokens a model meets around the text (see `special`);
the library's post-processor adds them.
"""

from collections.abc import Iterable, Sequence

from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers
from tokenizers import Tokenizer as Library
from tokenizers.processors import TemplateProcessing

from explorer.system import limits
from explorer.text.checked_text import TextError, checked
from explorer.text.library_training import BPE, learned_merges
from explorer.text.token import DECODER, SPECIALS, UNKNOWN, Reads
from explorer.text.tokenizer import Tokenizer

BYTES = 256
MOST_TRAINED_ENTRIES = 50_000


def character_tokenizer(
    alphabet: Iterable[str], reads: Reads = DECODER, *, lowercase: bool = False
) -> Tokenizer:
    """One token for each character; characters outside the alphabet become `<unk>`."""
    library = _look_up(sorted(set(alphabet)), reads, lowercase)
    library.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), "isolated")
    library.decoder = decoders.Fuse()
    return Tokenizer(library)


def word_tokenizer(
    words: Iterable[str], reads: Reads = DECODER, *, lowercase: bool = False
) -> Tokenizer:
    """One token for each word or run of punctuation; unlisted words become `<unk>`."""
    library = _look_up(sorted(set(words)), reads, lowercase)
    library.pre_tokenizer = pre_tokenizers.Whitespace()
    return Tokenizer(library)


def words_of(text: str) -> list[str]:
    """The words and runs of punctuation that a word tokenizer would find, in their order."""
    parts = pre_tokenizers.Whitespace().pre_tokenize_str(checked(text, limits.CORPUS_CHARACTERS))
    return [word for word, _ in parts]


def byte_tokenizer(
    text: str, vocab_size: int, reads: Reads = DECODER, *, lowercase: bool = False
) -> Tokenizer:
    """Byte-level BPE with merges trained on `text`, at most `vocab_size` tokens.

    It reads any text whatsoever: what was never seen is read byte by byte.
    """
    specials = SPECIALS[reads]
    if not BYTES + len(specials) <= vocab_size <= MOST_TRAINED_ENTRIES:
        raise TextError(
            f"A byte-level vocabulary has {BYTES + len(specials)} to {MOST_TRAINED_ENTRIES:,} "
            f"tokens, not {vocab_size:,}."
        )
    options = {
        "vocab_size": vocab_size,
        "special_tokens": list(specials),
        "initial_alphabet": sorted(pre_tokenizers.ByteLevel.alphabet()),
    }
    learned = learned_merges([checked(text, limits.CORPUS_CHARACTERS)], BPE, options, lowercase)
    merges = [(left, right) for left, right in learned["merges"]]
    library = Library(models.BPE(learned["vocab"], merges))
    library.normalizer = normalizers.Lowercase() if lowercase else None
    library.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, trim_offsets=False)
    library.decoder = decoders.ByteLevel()
    return Tokenizer(_finished(library, reads))


def _look_up(entries: Sequence[str], reads: Reads, lowercase: bool) -> Library:
    names = [*SPECIALS[reads], UNKNOWN]
    names += [entry for entry in entries if entry not in names]
    if len(names) > MOST_TRAINED_ENTRIES:
        raise TextError(f"A vocabulary has at most {MOST_TRAINED_ENTRIES:,} tokens.")
    vocabulary = {name: index for index, name in enumerate(names)}
    library = Library(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    library.normalizer = normalizers.Lowercase() if lowercase else None
    return _finished(library, reads)


def _finished(library: Library, reads: Reads) -> Library:
    """Marks the special tokens and says where they go."""
    specials = SPECIALS[reads]
    library.add_special_tokens([AddedToken(name, special=True) for name in specials])
    around = [(name, library.token_to_id(name)) for name in reads if name != "$A"]
    library.post_processor = TemplateProcessing(single=list(reads), special_tokens=around)
    return library
