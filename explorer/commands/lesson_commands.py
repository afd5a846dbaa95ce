"""The commands for lessons: `lesson new` writes a template, `lesson check` says what is wrong.

The caller passes the table of pages and of the parameters in their addresses: it belongs to the
frame of the app.
"""

import argparse
from functools import partial
from pathlib import Path
from typing import Any

from explorer.commands.training_commands import check_can_write
from explorer.lessons.lesson_file import SUFFIX, LessonError, Pages, faults, name_of, read_file

TEMPLATE = Path(__file__).parents[1] / "lessons" / "template.toml"


def add_commands(commands: Any, pages: Pages) -> None:
    lesson = commands.add_parser("lesson", help="write a lesson of your own, and check it")
    ways = lesson.add_subparsers(required=True, metavar="new|check")

    new = ways.add_parser("new", help="write a lesson with comments, to be filled in")
    new.set_defaults(command=new_lesson)
    new.add_argument("name", metavar="NAME", help="small letters, digits, _ and -")
    here = "the folder to write it into; by default this one"
    new.add_argument("--to", type=Path, default=Path(), metavar="FOLDER", help=here)

    check = ways.add_parser("check", help="say what is wrong with lessons")
    check.set_defaults(command=partial(check_lessons, pages=pages))
    check.add_argument("files", nargs="+", type=Path, metavar="FILE")


def new_lesson(args: argparse.Namespace) -> None:
    """Write the template under this name; an existing file is never overwritten."""
    path = args.to / f"{args.name.removesuffix(SUFFIX)}{SUFFIX}"
    name = name_of(path.name)
    check_can_write(path)
    try:
        args.to.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(TEMPLATE.read_text("utf-8").replace("NAME", name))
    except FileExistsError as error:
        raise LessonError(f"{path} is there already: choose another name.") from error
    print(f"{path} is a lesson to fill in; then: python -m explorer lesson check {path}")


def check_lessons(args: argparse.Namespace, pages: Pages) -> None:
    """Print a line for every fault of every file, and raise an error if there is any."""
    count = 0
    for path in args.files:
        try:
            lesson = read_file(path)
            lines = [*faults(lesson, pages)]
        except LessonError as error:
            lines = [str(error)]
        count += len(lines)
        if not lines:
            steps = f"{len(lesson.steps)} steps" if len(lesson.steps) > 1 else "1 step"
            lines = [f"{path.name}: {steps}, nothing wrong that can be seen without a browser."]
        print(*lines, sep="\n")
    if count:
        raise LessonError(f"{count} faults" if count > 1 else "1 fault")
