"""Another head: only what follows it is sent, where nothing else on the page has changed."""

from collections.abc import Collection

from streamlit.proto.WidgetStates_pb2 import WidgetState

from tests.calls import run_in_thread
from tests.reader import Answer, Reader, widgets
from tests.served import Server

LINKS_OF_THE_HEAD = 3
Seen = tuple[Answer, Answer]


def keys(answer: Answer) -> set[str]:
    """Of the widgets and views in it."""
    return {name for name, _ in widgets(answer)}


def texts(answer: Answer) -> list[str]:
    return [each.text.body for each in answer.elements if each.WhichOneof("type") == "text"]


async def another_head(url: str, query: str = "", *, typed: str = "") -> Seen:
    """The page, and the answer to a head that is picked in the bar, maybe after a sentence."""
    reader = Reader(url, page="attention", query=query)
    await reader.open()
    first = await reader.act()
    text = WidgetState(id=reader.widgets["text"].id, string_value=typed)
    shown = reader.widgets["head"].default
    answer = await reader.pick_head(int(shown == 0), *([text] if typed else []))
    await reader.close()
    for each in (first, answer):
        assert each.failures == []
    assert answer.picture() != first.picture(), "the large head is another one"
    return first, answer


def is_whole(answer: Answer, parts: Collection[str] = ("text", "model", "overview")) -> bool:
    """Whether the page was drawn, or only what follows the head; nothing in between."""
    links = sum(each.WhichOneof("type") == "page_link" for each in answer.elements)
    drawn = [part in keys(answer) for part in parts] + [links > LINKS_OF_THE_HEAD]
    assert len(set(drawn)) == 1, drawn
    return drawn[0]


def test_only_what_follows_the_head_is_drawn_again(app: Server) -> None:
    async def seen() -> list[Seen]:
        return [
            await another_head(app.url),
            await another_head(app.url, typed="cat mat"),
            await another_head(app.url, "layer=99"),
        ]

    (first, answer), typed, noted = run_in_thread(seen())
    assert is_whole(first)
    assert not is_whole(answer)
    assert {"layer", "head", "attention_head"} <= keys(answer)
    new = set(texts(answer)) - set(texts(first))
    assert any("head" in each for each in new), "what is said of the head"
    assert 2 * len(answer.elements) < len(first.elements)

    assert is_whole(typed[1]), "another sentence needs the page"
    assert typed[1].picture() != answer.picture()

    assert any("99" in each for each in texts(noted[0]))
    assert is_whole(noted[1]), "what was said of the address is said no longer"
    assert not any("99" in each for each in texts(noted[1]))


def test_a_page_that_ends_early_has_the_lists_of_the_bar(app: Server) -> None:
    async def first() -> Answer:
        reader = Reader(app.url, page="attention", query="text=" + 400 * "cat ")
        await reader.open()
        answer = await reader.act()
        await reader.close()
        return answer

    answer = run_in_thread(first())
    assert answer.picture() == b"", "the sentence is too long for the model"
    assert {"text", "model", "part", "layer", "head"} <= keys(answer)
