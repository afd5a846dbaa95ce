"""A step is done in the browser and by Python at the same addresses."""

from playwright.sync_api import Browser

from explorer.components.mounting import script
from explorer.lessons.lesson import FIRST_PAGE, LessonStep, is_done

USUAL = {"layer": "0", "text": "the cat"}
CASES: list[tuple[dict[str, str], str, bool]] = [
    ({}, "/masks?layer=1", False),
    ({"layer": "2"}, "/masks?layer=2", True),
    ({"layer": "2"}, "/masks?layer=1", False),
    ({"layer": "2"}, "/attention?layer=2", False),
    ({"layer": "2"}, "/masks", False),
    ({"layer": "0"}, "/masks", True),
    ({"layer": "0"}, "/masks?layer=1", False),
    ({"layer": "0"}, "/masks?layer=", False),
    ({"layer": ""}, "/masks", True),
    ({"layer": ""}, "/masks?layer=0", False),
    ({"text": "the cat"}, "/masks?text=the+cat", True),
    ({"text": "the cat"}, "/masks?text=the%20cat", True),
    ({"pinned": "*"}, "/masks?pinned=q1k1", True),
    ({"pinned": "*"}, "/masks?pinned=", False),
    ({"layer": "*"}, "/masks", False),
    ({"hide": "1"}, "/masks?hide=1&hide=2", True),
    ({"hide": "2"}, "/masks?hide=1&hide=2", False),
    ({"hide": "*", "layer": "0"}, "/masks?hide=1&hide=2", True),
    ({"page": "attention"}, "/attention", True),
    ({"page": "attention"}, "/masks", False),
    ({"page": "overview", "layer": "1"}, "/?layer=1", True),
    ({"page": "overview"}, "/masks", False),
]
"""What `done` has, an address, and whether it is done there, in a step that opens /masks."""


def test_the_browser_and_python_agree(browser: Browser) -> None:
    cases = [(base, *case) for base in ("", "/below/it") for case in CASES]
    asked = [
        {"done": done, "page": "masks", "first": FIRST_PAGE, "base": base, "usual": USUAL}
        for base, done, _, _ in cases
    ]
    code = script("lesson/strip.js").replace("export default", "const drawn =")
    page = browser.new_page()
    found = page.evaluate(
        """([code, asked, addresses]) => {
          const isDone = new Function(`${code}; return isDone;`)();
          return asked.map((each, i) => isDone(each, new URL(addresses[i], "http://app.test")));
        }""",
        [code, asked, [base + address for base, _, address, _ in cases]],
    )
    page.close()
    assert found == [expected for *_, expected in cases]
    for done, address, expected in CASES:
        at = LessonStep("There", address, "x")
        says = is_done(LessonStep("t", "/masks", "x", done=done), at.page, at.choices, USUAL)
        assert says is expected, (done, address)
