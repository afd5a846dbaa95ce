"""A model that ships is fine-tuned by a click, and compared with what it started from."""

from pathlib import Path

from playwright.sync_api import Browser, expect

from explorer.runs.run import all_runs
from tests.browser.visiting import Visitor
from tests.served import Server


def test_a_model_is_fine_tuned_and_compared_with_what_it_started_from(
    browser: Browser, tmp_path: Path
) -> None:
    with Server(tmp_path / "runs") as server:
        visitor = Visitor(browser, server.url)
        page = visitor.open("/training?task=reverse&start_from=reverse")
        visitor.has_everything()
        expect(page.get_by_text("3,072 of 89,758 parameters are trained")).to_be_visible()
        steps = page.get_by_label("Steps", exact=True)
        steps.fill("5")
        steps.press("Enter")
        visitor.rest()
        page.get_by_role("button", name="Start training").click()
        expect(page.get_by_text("Step 5 of 5")).to_be_visible(timeout=120_000)
        page.get_by_role("button", name="Compare with what it started from").click()
        expect(page.get_by_text("Weights that differ")).to_be_visible(timeout=60_000)
        visitor.rest()
        visitor.asks(model="reverse-1", training_step="0", other_step="5")
        visitor.asks(**{"with": "A training step"})
        (run,) = all_runs(server.runs)
        assert (run.spec.parent, run.spec.lora_rank) == ("reverse", 4)
        visitor.no_mishap()
        visitor.close()
        assert not server.tracebacks, server.tracebacks[0]
