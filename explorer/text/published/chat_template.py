"""Renders a chat template, which is a stranger's Jinja: sandboxed, and only in the child process.

The sandbox hides the attributes that lead out of it; the child's limits end a template that
computes, or takes memory, without end. A template finds the names that the `transformers` library
defines for it (apply_chat_template).
"""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NoReturn

from jinja2 import TemplateError, TemplateSyntaxError, UndefinedError, nodes
from jinja2.exceptions import SecurityError
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from explorer.text.checked_text import LARGEST_TEMPLATE, TextError
from explorer.text.visible_text import cut, readable

LONGEST_PROMPT, LONGEST_REASON = 50_000, 120
"""Characters of a prompt, and of the reason why there is none."""


class Refused(TemplateError):
    """An error that the template raises itself."""


class Generation(Extension):
    """`{% generation %}` marks the assistant's words for training; it changes no text."""

    tags = {"generation"}  # noqa: RUF012  as the base class has it

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


def render(
    template: str,
    messages: Sequence[Mapping[str, str]],
    names: Mapping[str, str],
    *,
    add_generation_prompt: bool,
) -> str:
    """The prompt of these messages, each with a `role` and a `content`.

    `names` are the special tokens by their names in a template, such as `eos_token`. TextError
    says in half a sentence why there is no prompt.
    """
    if len(template) > LARGEST_TEMPLATE:
        size = f"{len(template):,} characters"
        raise TextError(f"it has {size}; at most {LARGEST_TEMPLATE:,} are read")
    context: dict[str, Any] = {
        **names,
        "messages": [dict(message) for message in messages],
        "tools": None,
        "documents": None,
        "add_generation_prompt": add_generation_prompt,
    }
    try:
        parts = _environment().from_string(template).generate(context)
        return _join(parts)
    except Refused as error:
        raise TextError(f"it refuses these messages: {_reason(error)}") from None
    except TemplateSyntaxError as error:
        raise TextError(f"line {error.lineno} of it is no Jinja: {_reason(error)}") from None
    except SecurityError:
        raise TextError("it asks for what a template may not use") from None
    except UndefinedError as error:
        raise TextError(f"it needs what a prompt does not have: {_reason(error)}") from None
    except TemplateError as error:
        raise TextError(f"it ends in an error: {_reason(error)}") from None
    except OverflowError:
        raise TextError("it repeats something too often") from None
    except RecursionError:
        raise TextError("it calls itself without end") from None
    except (MemoryError, TextError):
        raise
    except Exception as error:  # noqa: BLE001  whatever a stranger's template runs into
        raise TextError(f"it ends in an error: {type(error).__name__}") from None


def _join(parts: Any) -> str:
    chunks, length = list[str](), 0
    for part in parts:
        length += len(part)
        if length > LONGEST_PROMPT:
            raise TextError(f"it makes more than {LONGEST_PROMPT:,} characters")
        chunks.append(part)
    text = "".join(chunks)
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise TextError("it makes half a character")
    return text


def _environment() -> ImmutableSandboxedEnvironment:
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )
    del environment.globals["lipsum"]
    environment.globals["raise_exception"] = _refuse
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    environment.filters["tojson"] = _to_json
    return environment


def _refuse(message: object) -> NoReturn:
    raise Refused(str(message))


def _to_json(value: object, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _reason(error: TemplateError) -> str:
    """A stranger's message in one short line of visible characters."""
    words = " ".join((error.message or "no reason is given").split())
    return cut(readable(words), LONGEST_REASON).rstrip(".").replace("␣", " ")
