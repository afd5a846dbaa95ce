"""Who meets the limit of lessons: a file that is too large."""

from collections.abc import Callable

import pytest

from explorer.lessons.lesson_file import LessonError, lesson_from


def lesson(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("EXPLORER_LIMIT_LESSON_BYTES", "200")
    step = '[[steps]]\ntitle = "a"\nopen = "/masks"\ntext = "b"\n'
    fits = f'title = "a"\nabout = "b"\nminutes = 1\n{step}'
    assert lesson_from(fits.encode(), "a.toml").steps
    with pytest.raises(LessonError) as refused:
        lesson_from((fits + "#" * 200).encode(), "a.toml")
    return str(refused.value).removeprefix("a.toml: ")


MEETINGS: dict[str, Callable[..., str]] = {"lesson_bytes": lesson}
