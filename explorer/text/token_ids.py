"""Token IDs typed as they are, for models that came without a tokenizer."""

from explorer.text.checked_text import TextError, checked
from explorer.text.token import Token

TYPE_IDS = "This model came without a tokenizer, so type token IDs such as 5 17 3."


class TypedTokenIds:
    """Every word of the text is a token ID."""

    kind = "numbers"
    lowercase = False
    pad_id = bos_id = eos_id = unk_id = cls_id = sep_id = mask_id = None
    special_ids: frozenset[int] = frozenset()

    def __init__(self, vocab_size: int) -> None:
        self.vocab_size = vocab_size

    def id_of(self, entry: str) -> int:
        if not (entry.isascii() and entry.isdigit()) or len(entry) > 9:
            raise TextError(TYPE_IDS)
        if int(entry) >= self.vocab_size:
            raise TextError(
                f"Token {entry} does not exist: this model has {self.vocab_size:,}, from 0 on."
            )
        return int(entry)

    def encode(self, text: str, pair: str | None = None) -> tuple[Token, ...]:
        second = self._tokens(pair, segment=1) if pair else ()
        return (*self._tokens(text), *second)

    def _tokens(self, text: str, segment: int = 0) -> tuple[Token, ...]:
        tokens, end = [], 0
        for word in checked(text).split():
            start = text.index(word, end)
            end = start + len(word)
            number = self.id_of(word)
            tokens.append(Token(number, word, start, end, segment=segment, second=bool(segment)))
        return tuple(tokens)

    def ids(self, text: str, pair: str | None = None) -> list[int]:
        return [token.id for token in self.encode(text, pair)]

    def decode(self, ids: list[int]) -> str:
        return " ".join(map(str, ids))

    def label(self, token_id: int) -> str:
        return str(token_id)

    def token(self, token_id: int) -> Token:
        return Token(token_id, str(token_id))
