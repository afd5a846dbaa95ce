"""The frame of every page: the bar with what is chosen, the pages by section, the way back."""

from playwright.sync_api import Locator, expect

from explorer.catalog import opened_model
from explorer.inference import forward_pass
from tests.browser.conftest import Visit
from tests.browser.visiting import Visitor
from tests.served import wait_until

BAR = ("text", "model", "part", "layer", "head")
CHOSEN = {"model": "long-gpt2", "text": "to be", "layer": "3", "head": "7"}
LINK = "model=long-gpt2&text=to+be&layer=3&head=7"


def folded(visitor: Visitor) -> list[bool]:
    """Whether each section of several pages is folded."""
    sections = visitor.widget("navigation").locator("details").all()
    return [section.get_attribute("open") is None for section in sections]


def is_shown(visitor: Visitor, chosen: dict[str, str]) -> None:
    """Wait until the bar and the address show this."""
    visitor.asks(**chosen)
    for key, value in chosen.items():
        expect(visitor.widget(key).locator("input")).to_have_value(value)


def bottom(element: Locator) -> float:
    box = element.bounding_box()
    assert box is not None
    return box["y"] + box["height"]


def is_one_row(visitor: Visitor) -> bool:
    """Whether all of the bar is there, in one row at the top, with room for a sentence."""
    boxes = [box for key in BAR if (box := visitor.widget(key).bounding_box())]
    ends = {round(box["y"] + box["height"]) for box in boxes}
    return len(boxes) == len(BAR) and ends <= {*range(100)} and boxes[0]["width"] >= 150


def test_what_is_chosen_stands_in_one_row_at_the_top(visit: Visit) -> None:
    visitor = visit(width=1280, height=720)
    for address in ("/?model=translation", "/attention?model=long-gpt2", "/query_key?model=bert"):
        visitor.open(address)
        wait_until(lambda: is_one_row(visitor), f"one row on {address}")


def test_every_page_is_in_sight_in_its_section_under_the_picture(visit: Visit) -> None:
    visitor = visit(width=1280, height=720)
    visitor.open("/")
    sidebar = visitor.page.get_by_test_id("stSidebarContent")
    for title in ("Positions", "Attention maps", "Compare"):
        visitor.follow(title)
        wait_until(lambda: folded(visitor).count(False) == 1, "one unfolded section")
        assert sidebar.evaluate("bar => bar.scrollHeight <= bar.clientHeight"), title
        assert bottom(visitor.widget("tools")) < 720, title
        assert bottom(visitor.links().last) < bottom(visitor.widget("theme")), title
        picture = visitor.widget("pass_picture").bounding_box()
        assert picture is not None
        assert picture["height"] == 180
        assert picture["y"] + 180 <= bottom(visitor.links().first)


def test_what_is_chosen_is_kept_through_pages_that_do_not_show_it(visitor: Visitor) -> None:
    page = visitor.open(f"/attention?{LINK}")
    is_shown(visitor, CHOSEN)
    for title, keys in {"Tokens": ("text", "model"), "Training": ()}.items():
        visitor.follow(title)
        assert [key for key in BAR if visitor.widget(key).is_visible()] == list(keys)
        visitor.asks(**CHOSEN)
    page.reload()
    visitor.rest()
    visitor.asks(**CHOSEN)
    visitor.follow("Heads")
    is_shown(visitor, CHOSEN)
    for title in ("Training", "Tokens", "Attention maps"):
        page.go_back()
        visitor.titled(title)
        visitor.rest()
        visitor.asks(**CHOSEN)
    is_shown(visitor, CHOSEN)


def test_the_way_back_leads_to_what_was_chosen_on_the_page(visitor: Visitor) -> None:
    page = visitor.open("/query_key?model=shakespeare&text=To+be")
    visitor.choose("Query", "1 · To")
    visitor.asks(query="1 · To")
    visitor.follow("Masks")
    page.go_back()
    visitor.titled("Query and key")
    visitor.rest()
    visitor.asks(query="1 · To")
    expect(visitor.widget("query").get_by_role("combobox")).to_have_value("1 · To")


def test_the_way_back_leads_to_the_model_before(visitor: Visitor) -> None:
    page = visitor.open("/attention?model=translation&head=0&text=the+cat")
    visitor.choose("Model", "shakespeare")
    visitor.asks(model="shakespeare")
    page.go_back()
    is_shown(visitor, {"model": "translation", "head": "0", "text": "the cat"})
    visitor.rest()
    page.go_forward()
    is_shown(visitor, {"model": "shakespeare"})


def cells(visitor: Visitor, key: str) -> tuple[float, float, float, float]:
    """Where the cells of a matrix begin and end in the window: left, top, right, bottom."""
    visitor.drawn(key)
    view = visitor.widget(key).locator("[data-cells]").first
    box = view.locator("canvas").first.bounding_box()
    assert box is not None
    left, top, cell, *_ = map(float, str(view.get_attribute("data-cells")).split())
    count = len(forward_pass.run_text(opened_model.open_model("shakespeare"), TEXT).target)
    left, top = box["x"] + left, box["y"] + top
    return left, top, left + cell * count, top + cell * count


TEXT = "Now is the winter of our discontent"


def test_a_choice_and_its_picture_are_on_one_screen(visit: Visit) -> None:
    """In a small window the large map is there as a whole, and what several maps begin."""
    visitor = visit(width=1280, height=720)
    for page, key, shown in (
        ("attention?view=Matrix", "attention_head", 1.0),
        ("heads?side=Finder", "found_head", 0.8),
        ("compare?with=Another+head", "map_difference", 0.5),
        ("masks?example=Your+sentence", "mask_both", 0.5),
    ):
        visitor.open(f"/{page}&model=shakespeare&text={TEXT.replace(' ', '+')}")
        _, top, _, end = cells(visitor, key)
        assert top + shown * (end - top) <= 720, page


def test_maps_grow_with_the_window_and_without_the_sidebar(visit: Visit) -> None:
    visitor = visit(width=1920, height=1080)
    page = visitor.open(f"/attention?view=Matrix&model=shakespeare&text={TEXT.replace(' ', '+')}")
    main = page.get_by_test_id("stMain")
    left, _, right, _ = cells(visitor, "attention_head")
    assert right - left > 560
    page.get_by_test_id("stSidebarHeader").hover()
    page.get_by_test_id("stSidebarCollapseButton").get_by_role("button").click()
    visitor.open(f"/masks?example=Your+sentence&model=shakespeare&text={TEXT.replace(' ', '+')}")
    wait_until(lambda: main.evaluate("main => main.clientWidth") > 1900, "the whole window")
    visitor.rest()
    left, _, right, _ = cells(visitor, "mask_both")
    assert right - left > 400
    assert right > 1500, "three beside each other reach the other end"
