"""The chat prompt: a system and a user message, rendered by the model's chat template."""

from typing import Any

import streamlit as st

from explorer.app import address, controls, widget_state
from explorer.app.address_parameters import TEXT_LIMIT
from explorer.app.context import PageContext
from explorer.app.messages import say
from explorer.app.session import session
from explorer.components.chips import chips
from explorer.inference.chat_prompt import render_chat, template_of
from explorer.text import TextError
from explorer.views.shared import widgets

SYSTEM, USER, ANSWER = "chat_system", "chat_user", "chat_answer"
TOO_LONG = (
    f"The prompt has {{length:,}} characters, and a sentence has at most {TEXT_LIMIT:,}: shorten "
    "the messages."
)
NO_MESSAGE = "There is no message yet: type one."


def draw_chat_panel(context: PageContext) -> None:
    """Draw an expander if the model has a chat template; render nothing until it is open."""
    opened = context.opened
    try:
        template = template_of(opened, context.folder)
    except TextError as error:
        say(str(error))
        return
    if template is None:
        return
    with st.expander("Chat prompt", address.is_named(USER), key="chat", on_change="rerun") as panel:
        if not panel.open:
            return
        form, preview = widgets.side_by_side(5, 8)
        with form:
            usual = context.choice.text  # unless that is a rendered prompt
            if context.choice.special:
                usual = str(session().defaults.get(USER, ""))
            controls.follow(USER, usual)
            how: dict[str, Any] = {"has_lines": True, **controls.PERSISTENT}
            user = controls.text_field(USER, usual, height=90, **how)
            system = controls.text_field(SYSTEM, height=68, **how)
            begins = controls.switch(ANSWER, **controls.PERSISTENT)
            with st.popover("Template"):
                st.code(template, language="jinja2", wrap_lines=True)
        if not user.strip():
            say(NO_MESSAGE)
            return
        with preview:
            try:
                prompt = render_chat(opened, template, system, user, add_generation_prompt=begins)
            except TextError as error:
                say(str(error))
                _draw_buttons(user, None)
            else:
                st.code(prompt.text, language=None, wrap_lines=True, height=150)
                chips(prompt.tokens, key="chat_tokens", height=120)
                if len(prompt.text) > TEXT_LIMIT:
                    say(TOO_LONG.format(length=len(prompt.text)))
                _draw_buttons(user, prompt.text)
                if context.choice.special and context.choice.text == prompt.text:
                    st.caption(
                        "The sentence is this prompt now; the bar shows it without its line ends."
                    )


def _draw_buttons(user: str, rendered: str | None) -> None:
    """Draw the buttons that make the rendered prompt, or the message alone, the sentence."""

    def use(text: str, special: str) -> None:
        widget_state.put("text", text)
        widget_state.put("special", special)
        session().defaults.pop(USER, None)  # the message stays as it was

    with st.container(horizontal=True):
        if rendered is not None:
            st.button(
                "Use as the sentence",
                key="chat_send",
                type="primary",
                on_click=use,
                args=(rendered, rendered),
                disabled=len(rendered) > TEXT_LIMIT,
            )
        st.button("Use the plain text", key="chat_plain", on_click=use, args=(user, ""))
