"""What these pages have somebody type works as written."""

import re
import shlex

from docs import examples, readme
from explorer.__main__ import _parser

COMMAND = re.compile(r"^\S*python -m explorer ([^|&#\n]+)", re.MULTILINE)


def test_python_prints_what_the_page_says() -> None:
    for page in examples.pages():
        text = page.read_text("utf-8")
        assert examples.with_output(text) == text, f"{page.name}: run: python -m docs.examples"


def test_every_command_is_one_that_is_understood() -> None:
    found = 0
    for page in readme.PAGES:
        shell = "\n".join(re.findall(r"^```bash\n(.*?)^```", page.read_text("utf-8"), re.M | re.S))
        for line in COMMAND.findall(shell.replace("\\\n", "")):
            asked = shlex.split(line, comments=True)
            assert _parser().parse_args(asked).command, f"{page.name}: {line}"
            found += 1
    assert found > 10
