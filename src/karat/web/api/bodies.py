"""Request bodies: JSON of limited size, and files streamed to disk."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Generic, TypeVar

from fastapi import Depends, Query, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from karat.errors import UsageError
from karat.web.framework.middleware import FORM
from karat.workflows.golden.import_ import file_name
from karat.workflows.workspace.workspace import display_name

_CHUNK = 1 << 20


class RequestBody(BaseModel):
    """Base of JSON bodies; unknown fields are an error."""

    model_config = ConfigDict(
        extra="forbid", strict=True, allow_inf_nan=False, str_max_length=100_000
    )


M = TypeVar("M", bound=RequestBody)


class Body(Generic[M]):
    """Reads a JSON body, after authorization and up to the size of a form.

    Unless it is ``required``, an empty one means the defaults.
    """

    def __init__(self, model: type[M], *, required: bool = True) -> None:
        self.model, self.required = model, required

    async def __call__(self, request: Request) -> M:
        data = bytearray()
        try:
            async for chunk in request.stream():
                data += chunk
                if len(data) > FORM:
                    raise HTTPException(413)
        except ClientDisconnect:
            raise UsageError("the request ended early") from None
        try:
            body = self.model.model_validate_json(bytes(data) or (b"" if self.required else b"{}"))
        except ValidationError as error:
            # Without the input, which may be long.
            raise RequestValidationError(
                [e | {"loc": ("body", *e["loc"])} for e in error.errors(include_url=False)]
            ) from None
        if "\0" in _all_text(body.model_dump()):
            raise UsageError("text must not contain NUL")
        return body


def _all_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping):
        return "".join(map(_all_text, value.values()))
    return "".join(map(_all_text, value)) if isinstance(value, list | tuple) else ""


@dataclass(frozen=True)
class Upload:
    path: Path  # temporary path, until the response is sent
    called: str  # the sender's name for it

    @contextmanager
    def named(self) -> Iterator[None]:
        """Let errors use the sender's name for the file."""
        with display_name(self.path, self.called):
            yield


async def received(
    request: Request,
    name: Annotated[
        str,
        Query(
            min_length=1,
            max_length=200,
            description="Name of the file: its extensions say whether it is compressed, and help "
            "to detect its format.",
        ),
    ],
) -> AsyncIterator[Upload]:
    """Stream the body to a temporary file, removed once the response is sent."""
    folder = await run_in_threadpool(tempfile.mkdtemp, prefix="karat-")
    try:
        called = name.replace("\\", "/").rstrip("/").rpartition("/")[2] or "upload"
        path = Path(folder) / file_name(name)
        out = await run_in_threadpool(path.open, "wb")
        try:
            await _write(request, out)
        except ClientDisconnect:
            raise UsageError("the upload ended early", fix="send it again") from None
        finally:
            await run_in_threadpool(out.close)
        yield Upload(path, called)
    finally:
        await run_in_threadpool(shutil.rmtree, folder, ignore_errors=True)


Uploaded = Annotated[Upload, Depends(received)]
"""A parameter of a route that takes a file; declare it after the user."""


async def _write(request: Request, out: BinaryIO) -> None:
    buffer = bytearray()
    async for chunk in request.stream():
        buffer += chunk
        if len(buffer) >= _CHUNK:
            await run_in_threadpool(out.write, bytes(buffer))
            buffer.clear()
    await run_in_threadpool(out.write, bytes(buffer))
