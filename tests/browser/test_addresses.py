"""An address is a view: for a friend who is sent it, and with nonsense in it."""

from playwright.sync_api import expect

from tests.browser.conftest import Visit
from tests.browser.visiting import Visitor
from tests.served import wait_until

SCRIPT = "%3Cscript%3Ealert(1)%3C%2Fscript%3E"
NONSENSE = [
    f"/?text={SCRIPT}&model=&part=&layer=&head=",
    "/attention?head=99&layer=-3&part=sideways&model=..%2F..%2Fetc%2Fpasswd&text=%00%FF%FE",
    f"/checkpoints?show=Weights&tensor={SCRIPT}&cell=x",
    "/interventions?model=gpt2&text=5+17+3&edits=1.2~h.d.0.1.z~%3Cimg+src=x+onerror=alert(1)%3E",
    f"/forward_pass?model=shakespeare&stage={SCRIPT}&decoder_token=999",
    "/interventions?edits=1.0",  # none is left for the next test
]


def same_for(friend: Visitor, visitor: Visitor, key: str, **how: bool) -> None:
    """A friend who opens the link sees the same picture."""
    visitor.rest()
    visitor.away()
    seen = visitor.picture(key)
    friend.open(visitor.page.url.removeprefix(visitor.url), **how)
    friend.shows(key, seen)


def test_nonsense_in_an_address_does_no_harm(visitor: Visitor) -> None:
    for address in NONSENSE:
        visitor.open(address)
        visitor.no_mishap()


def test_a_link_repeats_what_is_chosen_but_not_for_others(visitor: Visitor, visit: Visit) -> None:
    """The sentence, hidden keys and a pinned cell; lines of two heads; a stage; an edited pass."""
    friend = visit()
    visitor.open("/attention?model=shakespeare&layer=0&head=0&text=To+be")
    visitor.until_run(lambda: visitor.type("To be, or not to be"))
    visitor.asks(text="To be, or not to be")
    plain = visitor.picture("attention_head")
    visitor.widget("adjust").get_by_role("button").first.click()
    visitor.widget("hide_first").locator("label").first.click()
    visitor.asks(hide_first="true")
    visitor.changed("attention_head", plain)
    visitor.page.keyboard.press("Escape")
    visitor.click("attention_head", 3, 1)
    visitor.asks(pinned="q3k1")
    same_for(friend, visitor, "attention_head")
    sentence = friend.page.get_by_label("Your sentence", exact=True)
    expect(sentence).to_have_value("To be, or not to be")
    expect(friend.widget("attention_head").locator(".place")).to_have_text("query 3, key 1")

    visitor.turn_to("Lines")
    visitor.widget("attention_lines").get_by_role("button").nth(2).click()
    wait_until(lambda: ".2" in visitor.query().get("drawn", ""), "two heads in the address")
    same_for(friend, visitor, "attention_lines")
    drawn = friend.widget("attention_lines").get_by_role("button").all()
    assert [each.get_attribute("aria-pressed") for each in drawn].count("true") == 2

    visitor.open("/forward_pass?model=translation&head=0&stage=encoder.0.self_attn.weights")
    visitor.click("stage_values", 2, 4)
    visitor.asks(encoder_token="2", key_token="4")
    same_for(friend, visitor, "stage_values")
    expect(friend.widget("stage_values").locator(".place")).to_have_text("query 2, key 4")

    edit = "change=Mask&mask_how=One+key"
    visitor.open(f"/interventions?model=shakespeare&text=To+be,+or+not&layer=0&head=0&{edit}")
    visitor.press("Mask it for every query")
    made = visitor.widget("edits_made").get_by_text("masked for every query")
    expect(made).to_be_visible()
    same_for(friend, visitor, "map_after", fresh=True)
    friend.follow("Tokens")
    friend.load()
    friend.follow("Interventions")  # a page that changes nothing keeps them, and so does a reload
    friend.press("Remove")
    expect(friend.page.get_by_text("No interventions yet.")).to_be_visible()
    assert "edits" not in friend.query()
    expect(made).to_be_visible()
