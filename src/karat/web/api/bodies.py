"""Bodies: what programs send, as JSON of a bounded size or as a file that goes straight to disk."""

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
from karat.workflows.golden.audited import file_name
from karat.workflows.workspace.display_names import told_as

_CHUNK = 1 << 20


class Said(BaseModel):
    """What the body of a request says; a field that there is not is refused."""

    model_config = ConfigDict(
        extra="forbid", strict=True, allow_inf_nan=False, str_max_length=100_000
    )


M = TypeVar("M", bound=Said)


class Body(Generic[M]):
    """Reads a body of JSON; after it is known who sends it, and never more than a form may hold.

    Args:
        model: What it is to say.
        required: Whether there must be one; else an empty body says nothing but defaults.
    """

    def __init__(self, model: type[M], *, required: bool = True) -> None:
        self.model, self.required = model, required

    async def __call__(self, request: Request) -> M:
        """What the body says.

        Raises:
            RequestValidationError: something else.
            HTTPException: it is too long.
        """
        held = bytearray()
        try:
            async for chunk in request.stream():
                held += chunk
                if len(held) > FORM:
                    raise HTTPException(413)
        except ClientDisconnect:
            raise UsageError("the request ended early") from None
        try:
            found = self.model.model_validate_json(bytes(held) or (b"" if self.required else b"{}"))
        except ValidationError as error:
            # Not the input: it is as long as it likes.
            raise RequestValidationError(
                [each | {"loc": ("body", *each["loc"])} for each in error.errors(include_url=False)]
            ) from None
        if "\0" in repr_of(found.model_dump()):
            raise UsageError("no text holds the character 0")
        return found


def repr_of(held: Any) -> str:
    """Every text of a body in a row."""
    if isinstance(held, str):
        return held
    if isinstance(held, Mapping):
        return "".join(map(repr_of, held.values()))
    return "".join(map(repr_of, held)) if isinstance(held, list | tuple) else ""


@dataclass(frozen=True)
class Upload:
    """A file that was sent.

    Attributes:
        path: Where it lies until the answer is sent.
        called: What its sender calls it.
    """

    path: Path
    called: str

    @contextmanager
    def named(self) -> Iterator[None]:
        """Let errors speak of the file by the name that its sender knows."""
        with told_as(self.path, self.called):
            yield


async def received(
    request: Request,
    name: Annotated[
        str,
        Query(
            min_length=1,
            max_length=200,
            description="What the file is called: its endings say whether it is packed, and help "
            "to tell its format.",
        ),
    ],
) -> AsyncIterator[Upload]:
    """The body as a file, written as it comes in, gone when the answer is sent.

    Raises:
        UsageError: it ended early.
    """
    folder = await run_in_threadpool(tempfile.mkdtemp, prefix="karat-")
    try:
        called = name.replace("\\", "/").rstrip("/").rpartition("/")[2] or "upload"
        path = Path(folder) / file_name(name)
        out = await run_in_threadpool(path.open, "wb")
        try:
            await _written(request, out)
        except ClientDisconnect:
            raise UsageError("the upload ended early", fix="send it again") from None
        finally:
            await run_in_threadpool(out.close)
        yield Upload(path, called)
    finally:
        await run_in_threadpool(shutil.rmtree, folder, ignore_errors=True)


Uploaded = Annotated[Upload, Depends(received)]
"""A parameter of a route that takes a file; it stands after who asks."""


async def _written(request: Request, out: BinaryIO) -> None:
    held = bytearray()
    async for chunk in request.stream():
        held += chunk
        if len(held) >= _CHUNK:
            await run_in_threadpool(out.write, bytes(held))
            held.clear()
    await run_in_threadpool(out.write, bytes(held))
