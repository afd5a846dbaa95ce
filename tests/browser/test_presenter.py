"""Presenter mode in the running app: what it hides, how large it is, and what its keys do."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Visit
from tests.browser.test_lessons import LESSONS
from tests.browser.type_sizes import PAGES, go_presenting, note_canvas_type, written_on
from tests.browser.visiting import Visitor
from tests.served import wait_until

LARGE = 18.1 / 12
READY = "() => Boolean(globalThis.explorerPresenter)"
PLAIN_HTTP = """delete Crypto.prototype.randomUUID;
Object.defineProperty(window, "sessionStorage", {
  get() { throw new DOMException("forbidden", "SecurityError"); },
});"""
"""As from another machine, in a browser that keeps nothing."""
ANSWERS = """() => new Promise(come => {
  const {name} = JSON.parse(sessionStorage.getItem("explorer-talk")), heard = [];
  const channel = new BroadcastChannel(name);
  channel.onmessage = ({data}) => { if (heard.push(data) && data.told?.since) come(heard.length); };
  channel.postMessage({told: {step: "A title", on: []}});
  channel.postMessage({again: true});
})"""
"""To what a tab tells, and to a question behind it, which alone is answered."""
TALK = "JSON.parse(sessionStorage.getItem('explorer-talk')).name"
ENLARGED = "Number(document.documentElement.style.zoom || 1)"


def is_presenting(visitor: Visitor) -> bool:
    return "presenting" in (visitor.page.locator("html").get_attribute("class") or "")


def is_placed(visitor: Visitor) -> bool:
    """Whether the main figure was scrolled to, or need not be."""
    return bool(visitor.page.locator("html").get_attribute("data-placed"))


def begin(visitor: Visitor, address: str) -> None:
    """Open it, and present."""
    visitor.open(address)
    wait_until(lambda: visitor.page.evaluate(READY), "the code of the presenter")
    visitor.page.keyboard.press("f")
    wait_until(lambda: is_presenting(visitor), "presenter mode")
    wait_until(lambda: is_placed(visitor), "the main figure on screen")


def test_a_key_presents_and_leaves_and_the_address_says_so(visitor: Visitor) -> None:
    begin(visitor, "/attention")
    sidebar = visitor.page.get_by_test_id("stSidebar")
    expect(sidebar).to_be_hidden()
    for key in ("export", "keep", "kept_session", "code"):
        expect(visitor.widget(key)).to_have_count(1)
        expect(visitor.widget(key)).to_be_hidden()
    assert visitor.page.evaluate(ENLARGED) == pytest.approx(LARGE, rel=1e-4)
    assert visitor.query() == {"present": "true"}
    visitor.page.reload()
    visitor.rest()
    wait_until(lambda: is_presenting(visitor), "presenter mode again")
    visitor.page.keyboard.press("Escape")
    expect(sidebar).to_be_visible()
    assert not is_presenting(visitor)
    assert visitor.query() == {}


def test_it_stays_from_page_to_page_and_in_a_field_the_key_is_a_letter(visitor: Visitor) -> None:
    begin(visitor, "/attention")
    field = visitor.page.get_by_label("Your sentence", exact=True)
    visitor.until_run(lambda: visitor.type("the cat"))
    field.press("f")
    expect(field).to_have_value("the catf")
    assert is_presenting(visitor)
    assert visitor.query()["present"] == "true"
    field.blur()
    visitor.page.keyboard.press("Escape")
    assert not is_presenting(visitor)


def test_it_is_as_large_on_a_larger_screen(visit: Visit) -> None:
    wide = visit(width=1920, height=1080)
    begin(wide, "/attention")
    assert wide.page.evaluate(ENLARGED) == pytest.approx(1.5 * LARGE, rel=1e-4)


def test_pictures_stay_sharp_and_the_pointer_meets_its_cell(visitor: Visitor) -> None:
    begin(visitor, "/attention?model=translation")
    canvas, at = visitor.cell("attention_head", 2, 1)
    box = canvas.bounding_box()
    assert box
    sizes: list[float] = canvas.evaluate("canvas => [canvas.width, canvas.height]")
    assert [round(size) for size in sizes] == [round(box["width"]), round(box["height"])]
    visitor.page.mouse.move(box["x"] + LARGE * at["x"], box["y"] + LARGE * at["y"])
    sentence = visitor.widget("attention_head").locator(".sentence").first
    expect(sentence).to_contain_text("noir")
    expect(sentence).to_contain_text("black")


def test_everything_on_every_page_is_readable_from_the_last_row(
    visit: Visit, subtests: pytest.Subtests
) -> None:
    hall = visit(width=1280, height=720)
    note_canvas_type(hall.context)
    hall.open("/lessons?present=true")
    for page in PAGES:
        with subtests.test(page=page):
            go_presenting(hall, page)
            written = written_on(hall.page)
            assert written
            assert [each for each in written if each.pixels < 18] == []


def second_window(visitor: Visitor) -> Page:
    with visitor.context.expect_page() as opened:
        visitor.page.keyboard.press("s")
    return opened.value


def test_a_second_window_has_the_notes_and_steps_the_lesson(visitor: Visitor) -> None:
    begin(visitor, "/head_steps?lesson=why_sqrt_d")
    notes = second_window(visitor)
    expect(notes.locator("h1")).to_have_text("Products are large")
    expect(notes.locator(".where")).to_have_text("Why the scores are divided by √d · 1 of 6")
    expect(notes.locator(".words")).to_contain_text(
        "The pinned cell is <cls> as query and “was” as key", use_inner_text=True
    )
    expect(notes.locator(".next")).to_have_text("Next: What the softmax makes of a difference")
    expect(notes.locator("dl")).to_contain_text("Head, step by step")
    notes.keyboard.press("Space")
    expect(notes.locator("h1")).to_have_text("What the softmax makes of a difference")
    expect(visitor.page.get_by_role("heading", level=1)).to_have_text("Query and key")
    visitor.asks(present="true")
    visitor.page.keyboard.press("PageUp")
    expect(notes.locator(".where")).to_contain_text("1 of 6")
    visitor.page.reload()
    wait_until(lambda: visitor.page.evaluate(READY), "the code of the presenter")
    notes.keyboard.press("PageDown")
    visitor.asks(lesson_step="2")
    notes.close()


@pytest.mark.parametrize("key", ["Space", "ArrowRight"])
def test_no_key_goes_beyond_the_last_step_of_a_lesson(visitor: Visitor, key: str) -> None:
    lesson = LESSONS["why_sqrt_d"]
    last = lesson.steps[-1]
    begin(visitor, f"{last.begins}&lesson={lesson.name}&lesson_step={len(lesson.steps)}")
    title = visitor.page.locator(".lesson-strip .step")
    expect(title).to_have_text(last.title)
    visitor.page.keyboard.press(key)
    visitor.page.keyboard.press("PageUp")
    expect(title).to_have_text(lesson.steps[-2].title)
    visitor.page.keyboard.press("PageDown")
    expect(title).to_have_text(last.title)
    visitor.page.get_by_role("button", name="Finish").click()
    visitor.titled("Lessons")


def test_without_a_lesson_the_second_window_has_no_empty_parts(visitor: Visitor) -> None:
    begin(visitor, "/attention")
    notes = second_window(visitor)
    expect(notes.locator("h1")).to_have_text("Attention maps")
    expect(notes.locator(".words")).to_have_text("Open a lesson to see its notes here.")
    for part in (".where", ".next"):
        expect(notes.locator(part)).to_be_hidden()
    notes.close()


def test_arrows_step_through_the_page_and_the_space_bar_too_without_a_lesson(
    visitor: Visitor,
) -> None:
    begin(visitor, "/head_steps?model=translation&up_to=scores")
    visitor.page.keyboard.press("ArrowRight")
    visitor.asks(up_to="scaled")
    visitor.page.keyboard.press("Space")
    visitor.asks(up_to="masked")
    visitor.page.keyboard.press("Shift+Space")
    visitor.asks(up_to="scaled")
    visitor.open("/forward_pass?model=translation&present=true")
    visitor.drawn("stage_list")
    visitor.page.keyboard.press("PageDown")
    wait_until(lambda: "stage" in visitor.query(), "a stage in the address")


def test_arrows_step_the_picture_of_the_overview(visitor: Visitor) -> None:
    begin(visitor, "/overview?model=translation")
    visitor.drawn("pass_map")
    said = visitor.widget("pass_map").locator(".sentence").first
    expect(said).to_contain_text("What led to")
    for key, text in (
        ("ArrowRight", "Layer 0"),
        ("Space", "The answer."),
        ("ArrowLeft", "Layer 0"),
        ("ArrowLeft", "What led to"),
    ):
        visitor.page.keyboard.press(key)
        expect(said).to_contain_text(text)


def test_the_main_figure_is_on_screen_in_a_hall(visit: Visit) -> None:
    hall = visit(width=1280, height=720)
    begin(hall, "/attention?model=translation")
    last = hall.cell("attention_head", 9, 9)
    top = last[0].bounding_box()
    assert top
    assert top["y"] + LARGE * last[1]["y"] < 720
    heading = hall.widget("head_title").bounding_box()
    assert heading
    assert 0 <= heading["y"] < 40


def test_what_the_keys_step_is_in_view_and_after_it_the_page_is_where_it_was(visit: Visit) -> None:
    hall = visit(width=1920, height=1080)
    begin(hall, "/?model=shakespeare")
    picture, main = hall.widget("pass_map"), hall.page.get_by_test_id("stMain")
    expect(picture).to_be_in_viewport(ratio=1)
    main.evaluate("main => main.scrollTo({top: main.scrollHeight, behavior: 'instant'})")
    expect(picture).not_to_be_in_viewport()
    hall.page.keyboard.press("Space")
    expect(picture).to_be_in_viewport(ratio=0.99)  # to the pixel
    expect(picture.locator(".sentence").first).to_contain_text("Layer 0")
    hall.page.keyboard.press("Escape")
    assert main.evaluate("main => main.scrollTop") == 0
    main.evaluate("main => main.scrollTo({top: 120, behavior: 'instant'})")
    hall.page.keyboard.press("f")
    wait_until(lambda: is_placed(hall), "the main figure on screen")
    hall.page.keyboard.press("Escape")
    assert main.evaluate("main => main.scrollTop") == 120


def test_a_row_of_steps_is_not_scrolled_over(visit: Visit) -> None:
    hall = visit(width=1280, height=720)
    begin(hall, "/head_steps?model=translation")
    expect(hall.widget("stages").locator("canvas").first).to_be_in_viewport()
    expect(hall.widget("up_to")).to_be_in_viewport(ratio=1)


def test_the_pointer_is_seen_and_hides_no_cell(visitor: Visitor) -> None:
    begin(visitor, "/attention")
    spot = visitor.page.locator(".presenter-spot")
    expect(spot).to_be_hidden()
    visitor.page.keyboard.press("l")
    visitor.page.mouse.move(400, 300)
    box = spot.bounding_box()
    assert box
    assert (round(box["x"] + box["width"] / 2), round(box["y"] + box["height"] / 2)) == (400, 300)
    assert spot.evaluate("spot => getComputedStyle(spot).pointerEvents") == "none"
    visitor.page.keyboard.press("l")
    expect(spot).to_be_hidden()


def test_the_keys_are_listed(visitor: Visitor) -> None:
    visitor.open("/attention")
    wait_until(lambda: visitor.page.evaluate(READY), "the code of the presenter")
    visitor.page.keyboard.press("?")
    keys = visitor.page.get_by_role("dialog", name="Keys")
    expect(keys).to_contain_text("A pointer that everybody sees")
    visitor.page.keyboard.press("Escape")
    expect(keys).to_have_count(0)
    visitor.page.get_by_role("button", name="Present", exact=True).click()
    wait_until(lambda: is_presenting(visitor), "presenter mode")


def test_it_works_over_plain_http_and_where_nothing_is_kept(visit: Visit) -> None:
    visitor = visit()
    visitor.context.add_init_script(PLAIN_HTTP)
    begin(visitor, "/head_steps?lesson=why_sqrt_d")
    assert visitor.page.evaluate("typeof crypto.randomUUID") == "undefined"
    notes = second_window(visitor)
    expect(notes.locator("h1")).to_have_text("Products are large")
    notes.keyboard.press("Space")
    visitor.asks(lesson_step="2")
    notes.close()


def test_a_tab_made_from_another_is_a_talk_of_its_own(visit: Visit) -> None:
    visitor = visit()
    page = visitor.open("/attention")
    wait_until(lambda: page.evaluate(READY), "the code of the presenter")
    assert page.evaluate(ANSWERS) == 1
    with visitor.context.expect_page() as opened:
        page.evaluate("() => { window.open(location.href); }")
    double = opened.value
    wait_until(lambda: double.evaluate(READY), "the code of the presenter")
    talk, its_talk = page.evaluate(TALK), double.evaluate(TALK)
    assert talk != its_talk
    page.reload()
    wait_until(lambda: page.evaluate(READY), "the code of the presenter")
    assert page.evaluate(TALK) == talk
    double.close()


def test_a_second_window_that_is_blocked_is_said_and_full_screen_still_ends_it(
    visitor: Visitor,
) -> None:
    begin(visitor, "/attention")
    wait_until(lambda: visitor.page.evaluate("Boolean(document.fullscreenElement)"), "full screen")
    visitor.page.evaluate("() => { window.open = () => null; }")
    visitor.page.keyboard.press("s")
    said = visitor.page.get_by_role("dialog", name="Notes")
    expect(said).to_contain_text("allow pop-ups for this page")
    said.get_by_role("button", name="Close").click()
    visitor.page.evaluate("() => document.exitFullscreen()")
    wait_until(lambda: not is_presenting(visitor), "the end of presenter mode")


def test_letters_are_keys_only_where_they_are_needed_and_can_be_turned_off(visit: Visit) -> None:
    visitor = visit()
    page = visitor.open("/attention")
    wait_until(lambda: page.evaluate(READY), "the code of the presenter")
    page.keyboard.press("s")
    page.keyboard.press("l")
    expect(page.locator(".presenter-spot")).to_be_hidden()
    assert len(visitor.context.pages) == 1
    keys = page.get_by_role("dialog", name="Keys")
    page.keyboard.press("?")
    keys.get_by_label("Letters and ? are keys").uncheck()
    keys.get_by_role("button", name="Close").click()
    for loaded_anew in (False, True):
        if loaded_anew:
            page.reload()
            wait_until(lambda: page.evaluate(READY), "the code of the presenter")
        page.keyboard.press("f")
        page.keyboard.press("?")
        expect(keys).to_have_count(0)
        assert not is_presenting(visitor)
    page.keyboard.press("Control+/")
    keys.get_by_label("Letters and ? are keys").check()
    keys.get_by_role("button", name="Close").click()
    page.keyboard.press("f")
    wait_until(lambda: is_presenting(visitor), "presenter mode")
    page.keyboard.press("Control+/")
    keys.get_by_role("button", name="A pointer that everybody sees").press("Enter")
    expect(page.locator(".presenter-spot")).to_be_visible()
    expect(keys).to_have_count(0)
    page.keyboard.press("Control+/")
    keys.get_by_role("button", name="Present, and leave it").click()
    wait_until(lambda: not is_presenting(visitor), "the page as it was")
