"""The body of a long answer, in pieces: who reads it slowly holds one, not a copy of the whole."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

PIECE = 1 << 16
"""Bytes that are handed on at once."""


class AnswerPieces:
    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_pieces(message: Message) -> None:
            rest = memoryview(message.get("body", b""))
            while len(rest) > PIECE:
                await send({**message, "body": bytes(rest[:PIECE]), "more_body": True})
                rest = rest[PIECE:]
            await send({**message, "body": bytes(rest)} if rest else message)

        await self.app(scope, receive, send_pieces if scope["type"] == "http" else send)
