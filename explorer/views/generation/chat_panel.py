"""A chat's messages as the model reads them: rendered by its template, special tokens and all."""

from typing import Any

import streamlit as st

from explorer.app import address, controls, widget_state
from explorer.app.address_parameters import TEXT_LIMIT
from explorer.app.context import PageContext
from explorer.app.messages import say
from explorer.app.session import session
from explorer.components import chips
from explorer.inference.chat_prompt import ChatPrompt, render_chat, template_of
from explorer.text import TextError
from explorer.views.shared import widgets

SYSTEM, USER, ANSWER = "chat_system", "chat_user", "chat_answer"
TOO_LONG = (
    f"The prompt has {{length:,}} characters, and a sentence has at most {TEXT_LIMIT:,}: shorten "
    "the messages."
)
NO_MESSAGE = "There is no message yet: type one."


def draw_chat_panel(context: PageContext) -> None:
    """An expander, for a model that comes with a chat template; nothing is rendered until open."""
    opened = context.opened
    try:
        template = template_of(opened, context.folder)
    except TextError as error:
        say(str(error))
        return
    if template is None:
        return
    title, is_asked = "Chat prompt", address.is_named(USER)
    with st.expander(title, is_asked, key="chat", on_change="rerun") as panel:
        if not panel.open:
            return
        asked, made = widgets.side_by_side(5, 8)
        with asked:
            system, user, begins = _choose_messages(context)
            with st.popover("Template"):
                st.code(template, language="jinja2", wrap_lines=True)
        if not user.strip():
            say(NO_MESSAGE)
            return
        with made:
            try:
                prompt = render_chat(opened, template, system, user, add_generation_prompt=begins)
            except TextError as error:
                say(str(error))
                _draw_buttons(user, None)
            else:
                _draw_prompt(prompt, user, context.choice.text if context.choice.special else "")


def _choose_messages(context: PageContext) -> tuple[str, str, bool]:
    """What the system and the user say, and whether the answer is begun.

    The user says the sentence, unless that is a prompt already.
    """
    before = str(session().defaults.get(USER, ""))
    usual = before if context.choice.special else context.choice.text
    controls.follow(USER, usual)
    how: dict[str, Any] = {"has_lines": True, **controls.PERSISTENT}
    user = controls.text_field(USER, usual, height=90, **how)
    system = controls.text_field(SYSTEM, height=68, **how)
    begins = controls.switch(ANSWER, **controls.PERSISTENT)
    return system, user, begins


def _draw_prompt(prompt: ChatPrompt, user: str, sent: str) -> None:
    """The rendered text and its tokens, and what makes a sentence of it; `sent` is one already."""
    st.code(prompt.text, language=None, wrap_lines=True, height=150)
    chips(prompt.tokens, key="chat_tokens", height=120)
    if len(prompt.text) > TEXT_LIMIT:
        say(TOO_LONG.format(length=len(prompt.text)))
    _draw_buttons(user, prompt.text)
    if sent == prompt.text:
        st.caption("The sentence is this prompt now; the bar shows it without its line ends.")


def _draw_buttons(user: str, rendered: str | None) -> None:
    """Send the rendered prompt as the sentence, or the message alone."""

    def send(text: str, special: str) -> None:
        widget_state.put("text", text)
        widget_state.put("special", special)
        session().defaults.pop(USER, None)  # the message stays as it was

    with st.container(horizontal=True):
        if rendered is not None:
            st.button(
                "Use as the sentence",
                key="chat_send",
                type="primary",
                on_click=send,
                args=(rendered, rendered),
                disabled=len(rendered) > TEXT_LIMIT,
            )
        st.button("Use the plain text", key="chat_plain", on_click=send, args=(user, ""))
